//! The HTTP client of the team server's API, for a page or a program.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::paths::{before_of, of_file, of_project, of_run, part};
use crate::{
    About, Credentials, DailyLimits, EntryShown, FileShown, FirstAdmin, IdentityShown, InvitationMade,
    InvitationShown, KeyChange, KeyShown, LimitScope, LimitsShown, MemberChange, MemberShown, Membership,
    Myself, NewBranch, NewInvitation, NewKey, NewMember, NewProject, NewRole, NewRun, NewToken, OidcRedirect,
    OidcRequest, OidcResponse, PasswordChange, Problem, ProjectChange, ProjectKey, ProjectShown, RunChange,
    RunDetail, RunOrder, RunPage, RunShown, SessionShown, TokenMade, TokenShown, UsageShown, import_path,
};

/// Declares requests of a [`Client`]: what they are called and what they need to know, how and where they are made, what is
/// sent with them, and what comes back.
macro_rules! requests {
    (@sent) => { None::<&()> };
    (@sent $sent:expr) => { Some($sent) };
    ($(
        $(#[$about:meta])+
        $name:ident($($given:ident: $kind:ty),*): $method:ident $path:expr $(, $sent:expr)? => $answer:ty;
    )*) => {
        impl<T: $crate::Transport> $crate::Client<T> {
            $(
                $(#[$about])+
                ///
                /// # Errors
                /// When the server is not reached or refuses, see [`ClientError`](crate::ClientError).
                pub async fn $name(&self, $($given: $kind),*) -> Result<$answer, $crate::ClientError> {
                    self.ask($crate::Method::$method, &$path, requests!(@sent $($sent)?)).await
                }
            )*
        }
    };
}
pub(crate) use requests;

/// How a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Adds.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Takes away.
    Delete,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, which is JSON unless something between client and server answered.
    pub body: String,
}

impl Answer {
    /// The document that was asked for.
    ///
    /// # Errors
    /// When it is no success, or no such document.
    pub fn document<A: DeserializeOwned>(&self) -> Result<A, ClientError> {
        if !(200..300).contains(&self.status) {
            return Err(self.refusal());
        }
        // No content is JSON's nothing.
        let text = if self.body.is_empty() { "null" } else { &self.body };
        serde_json::from_str(text).map_err(|_| ClientError::UnexpectedAnswer { status: self.status })
    }

    /// Why the server refuses, of an answer that is no success.
    pub fn refusal(&self) -> ClientError {
        let unexpected = ClientError::UnexpectedAnswer { status: self.status };
        serde_json::from_str(&self.body).map_or(unexpected, ClientError::Refused)
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its media type.
    pub kind: &'static str,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Body {
    fn json(document: &impl Serialize) -> Self {
        Self {
            kind: "application/json",
            bytes: serde_json::to_vec(document).expect("documents are plain"),
        }
    }
}

/// Carries requests: the browser's `fetch`, or an HTTP client with a token.
pub trait Transport {
    /// Why nothing came back.
    type Error: std::fmt::Display;

    /// Sends a request to a path of the server, such as `/api/projects`, and reads the answer.
    ///
    /// # Errors
    /// When nothing came back.
    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> impl Future<Output = Result<Answer, Self::Error>>;
}

/// Why a client does not get what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Nothing came back.
    #[error("the server was not reached: {0}")]
    Unreached(String),
    /// The server refuses.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// Something else answered, or another version.
    #[error("what answered with status {status} is no team server of this version")]
    UnexpectedAnswer {
        /// The HTTP status.
        status: u16,
    },
}

impl ClientError {
    /// The HTTP status of a refusal; none where the server said nothing.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(problem) => Some(problem.status),
            Self::Unreached(_) | Self::UnexpectedAnswer { .. } => None,
        }
    }
}

/// A client of a team server.
#[derive(Debug, Clone)]
pub struct Client<T>(T);

impl<T: Transport> Client<T> {
    /// A client over a transport.
    pub fn new(transport: T) -> Self {
        Self(transport)
    }

    pub(crate) async fn ask<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, ClientError> {
        self.ask_with(method, path, body.map(Body::json)).await
    }

    async fn ask_with<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> Result<A, ClientError> {
        self.granted(method, path, body).await?.document()
    }

    async fn granted(&self, method: Method, path: &str, body: Option<Body>) -> Result<Answer, ClientError> {
        let answer = self.0.send(method, path, body).await;
        let answer = answer.map_err(|error| ClientError::Unreached(error.to_string()))?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        Err(answer.refusal())
    }

    pub(crate) async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ClientError> {
        self.ask(Method::Get, path, None::<&()>).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.ask(Method::Delete, path, None::<&()>).await
    }

    /// Makes a project of an archive that a server exported, under the name that it had unless another is given.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn import_project(
        &self,
        name: Option<&str>,
        archive: Vec<u8>,
    ) -> Result<ProjectShown, ClientError> {
        let body = Body {
            kind: "application/x-tar",
            bytes: archive,
        };
        self.ask_with(Method::Post, &import_path(name), Some(body)).await
    }
}

requests! {
    /// What the server is, and who is signed in.
    about(): Get "/api" => About;
    /// Makes the first administrator and signs them in.
    set_up(first: &FirstAdmin): Post "/api/set-up", first => Myself;
    /// Signs in.
    sign_in(credentials: &Credentials): Post "/api/session", credentials => Myself;
    /// Signs out.
    sign_out(): Delete "/api/session" => ();
    /// Begins to sign in at the issuer, or to link an identity there.
    oidc_request(request: &OidcRequest): Post "/api/oidc/request", request => OidcRedirect;
    /// Ends what [`Client::oidc_request`] began.
    oidc_response(response: &OidcResponse): Post "/api/oidc/response", response => Myself;
    /// The identities by which one signs in.
    identities(): Get "/api/identities" => Vec<IdentityShown>;
    /// Unlinks one of them; all other browsers are signed out.
    unlink_identity(id: &str): Delete format!("/api/identities/{}", part(id)) => ();
    /// The browsers in which one is signed in.
    sessions(): Get "/api/sessions" => Vec<SessionShown>;
    /// Signs one of them out.
    end_session(id: &str): Delete format!("/api/sessions/{}", part(id)) => ();
    /// One's own tokens.
    tokens(): Get "/api/tokens" => Vec<TokenShown>;
    /// Makes a token.
    add_token(new: &NewToken): Post "/api/tokens", new => TokenMade;
    /// Withdraws a token.
    withdraw_token(id: &str): Delete format!("/api/tokens/{}", part(id)) => ();
    /// Replaces one's password; all other browsers are signed out.
    set_password(change: &PasswordChange): Put "/api/password", change => ();
    /// All members of the server.
    members(): Get "/api/members" => Vec<MemberShown>;
    /// Changes what a member may do.
    change_member(name: &str, change: &MemberChange):
        Patch format!("/api/members/{}", part(name)), change => MemberShown;
    /// The open invitations to the server.
    invitations(): Get "/api/invitations" => Vec<InvitationShown>;
    /// Invites somebody to the server.
    invite(new: &NewInvitation): Post "/api/invitations", new => InvitationMade;
    /// Takes an invitation to the server back.
    withdraw_invitation(id: &str): Delete format!("/api/invitations/{}", part(id)) => ();
    /// Follows an invitation and signs the new member in.
    follow_invitation(new: &NewMember): Post "/api/members", new => Myself;
    /// The audit log of the server, the latest lines first, or those before one of an id.
    audit(before: Option<i64>): Get before_of("/api/audit", before) => Vec<EntryShown>;
    /// One's projects.
    projects(): Get "/api/projects" => Vec<ProjectShown>;
    /// Makes a project.
    add_project(new: &NewProject): Post "/api/projects", new => ProjectShown;
    /// A project.
    project(project: &str): Get of_project(project, "") => ProjectShown;
    /// Gives a project another title.
    change_project(project: &str, change: &ProjectChange):
        Patch of_project(project, ""), change => ProjectShown;
    /// Deletes a project and all that is in it.
    delete_project(project: &str): Delete of_project(project, "") => ();
    /// Who has which role in a project.
    project_members(project: &str): Get of_project(project, "/members") => Vec<Membership>;
    /// Gives a member a role in a project.
    set_role(project: &str, member: &str, new: &NewRole):
        Put of_project(project, &format!("/members/{}", part(member))), new => ();
    /// Takes a member's role in a project away.
    remove_from_project(project: &str, member: &str):
        Delete of_project(project, &format!("/members/{}", part(member))) => ();
    /// The open invitations to a project.
    project_invitations(project: &str): Get of_project(project, "/invitations") => Vec<InvitationShown>;
    /// Invites somebody to a project.
    invite_to_project(project: &str, new: &NewRole):
        Post of_project(project, "/invitations"), new => InvitationMade;
    /// Takes an invitation to a project back.
    withdraw_project_invitation(project: &str, id: &str):
        Delete of_project(project, &format!("/invitations/{}", part(id))) => ();
    /// The audit log of a project, the latest lines first, or those before one of an id.
    project_audit(project: &str, before: Option<i64>):
        Get before_of(&of_project(project, "/audit"), before) => Vec<EntryShown>;
}

requests! {
    /// All shared keys.
    keys(): Get "/api/keys" => Vec<KeyShown>;
    /// Adds a key.
    add_key(new: &NewKey): Post "/api/keys", new => ();
    /// Says other things of a key, or replaces it.
    change_key(name: &str, change: &KeyChange): Put format!("/api/keys/{}", part(name)), change => ();
    /// Takes a key away.
    delete_key(name: &str): Delete format!("/api/keys/{}", part(name)) => ();
    /// All limits.
    limits(): Get "/api/limits" => Vec<LimitsShown>;
    /// What was consumed in the last so many days, today included.
    usage(days: u16): Get format!("/api/usage?days={days}") => Vec<UsageShown>;
    /// The keys that a project may use.
    project_keys(project: &str): Get of_project(project, "/keys") => Vec<ProjectKey>;
}

impl<T: Transport> Client<T> {
    /// Says what a member, a project or a key may consume in a day.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_limits(
        &self,
        scope: LimitScope,
        name: &str,
        limits: &DailyLimits,
    ) -> Result<(), ClientError> {
        let scope = match scope {
            LimitScope::Member => "member",
            LimitScope::Project => "project",
            LimitScope::Key => "key",
        };
        let path = format!("/api/limits/{scope}/{}", part(name));
        self.ask(Method::Put, &path, Some(limits)).await
    }
}

requests! {
    /// A run with its study.
    run(run: &str): Get of_run(run, "") => RunDetail;
    /// Starts a run. The project has its data files already, see [`Client::put_file`].
    add_run(project: &str, new: &NewRun): Post of_project(project, "/runs"), new => RunShown;
    /// Gives a run another name.
    change_run(run: &str, change: &RunChange): Patch of_run(run, ""), change => RunShown;
    /// Tells a run to do something.
    order_run(run: &str, order: &RunOrder): Post of_run(run, "/orders"), order => RunShown;
    /// Makes a run that shares the beginning of another.
    branch_run(run: &str, new: &NewBranch): Post of_run(run, "/branches"), new => RunShown;
    /// Deletes a run that is not running.
    delete_run(run: &str): Delete of_run(run, "") => ();
}

impl<T: Transport> Client<T> {
    /// The runs of one project, or of all one's projects, those that were added last first, or those of the page that
    /// an earlier one names.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn runs(&self, project: Option<&str>, before: Option<&str>) -> Result<RunPage, ClientError> {
        let named = [("project", project), ("before", before)];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", part(value?))));
        let query = named.collect::<Vec<_>>().join("&");
        self.get(format!("/api/runs?{query}").trim_end_matches('?')).await
    }

    /// Keeps the journal of a run that was made elsewhere, once it is verified, with the SHA-256 of the data files that its
    /// study names, by path; the project has them already.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn push_run(
        &self,
        project: &str,
        name: &str,
        files: &BTreeMap<String, String>,
        journal: Vec<u8>,
    ) -> Result<RunShown, ClientError> {
        let mut query = format!("/journals?name={}", part(name));
        if !files.is_empty() {
            let files = serde_json::to_string(files).expect("paths are text");
            query += "&files=";
            query += &part(&files);
        }
        let path = of_project(project, &query);
        let body = Body {
            kind: "application/x-ndjson",
            bytes: journal,
        };
        self.ask_with(Method::Post, &path, Some(body)).await
    }

    /// Whether a project has the file of a SHA-256, in hexadecimal digits.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn has_file(&self, project: &str, sha256: &str) -> Result<bool, ClientError> {
        let path = of_file(project, sha256);
        match self.get::<FileShown>(&path).await {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Keeps a data file in a project, under its SHA-256 in hexadecimal digits.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn put_file(
        &self,
        project: &str,
        sha256: &str,
        bytes: Vec<u8>,
    ) -> Result<FileShown, ClientError> {
        let path = of_file(project, sha256);
        let body = Body {
            kind: "application/octet-stream",
            bytes,
        };
        self.ask_with(Method::Put, &path, Some(body)).await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::executor::block_on;

    use super::*;
    use crate::Role;

    /// Answers the same to everything, and notes what it was asked.
    struct Fixed(u16, &'static str, RefCell<Vec<String>>);

    impl Transport for &Fixed {
        type Error = String;

        async fn send(&self, method: Method, path: &str, body: Option<Body>) -> Result<Answer, String> {
            let Fixed(status, answer, asked) = self;
            let body = body.map_or_else(String::new, |body| String::from_utf8(body.bytes).unwrap());
            asked.borrow_mut().push(format!("{method:?} {path} {body}"));
            if *status == 0 {
                return Err("no network".into());
            }
            Ok(Answer {
                status: *status,
                body: (*answer).into(),
            })
        }
    }

    fn fixed(status: u16, answer: &'static str) -> Fixed {
        Fixed(status, answer, RefCell::default())
    }

    #[test]
    fn names_are_parts_of_paths() {
        let transport = fixed(204, "");
        let client = Client::new(&transport);
        let new = NewRole { role: Role::Editor };
        block_on(client.set_role("a/../b", "x?y", &new)).unwrap();
        assert_eq!(
            *transport.2.borrow(),
            [r#"Put /api/projects/a%2F..%2Fb/members/x%3Fy {"role":"editor"}"#]
        );
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let problem = r#"{"type":"/problems/missing","title":"Not there","status":404,"detail":"There is no such project."}"#;
        let transport = fixed(404, problem);
        let error = block_on(Client::new(&transport).project("alpha")).unwrap_err();
        assert_eq!(error.to_string(), "There is no such project.");
    }

    #[test]
    fn a_static_host_is_no_team_server() {
        for (status, answer) in [(200, "<!doctype html>"), (404, "nothing here"), (200, "{}")] {
            let transport = fixed(status, answer);
            let error = block_on(Client::new(&transport).about()).unwrap_err();
            assert_eq!(error, ClientError::UnexpectedAnswer { status });
        }
        let transport = fixed(0, "");
        let error = block_on(Client::new(&transport).about()).unwrap_err();
        assert_eq!(error, ClientError::Unreached("no network".into()));
    }
}
