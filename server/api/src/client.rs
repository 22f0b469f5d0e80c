//! What a page or a program asks the server for.

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
        let stranger = ClientError::UnexpectedAnswer { status: self.status };
        serde_json::from_str(&self.body).map_or(stranger, ClientError::Refused)
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

    /// What the server is, and who is signed in.
    ///
    /// # Errors
    /// As all requests here: when the server is not reached or refuses, see [`ClientError`].
    pub async fn about(&self) -> Result<About, ClientError> {
        self.get("/api").await
    }

    /// Makes the first administrator and signs them in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_up(&self, first: &FirstAdmin) -> Result<Myself, ClientError> {
        self.ask(Method::Post, "/api/set-up", Some(first)).await
    }

    /// Signs in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sign_in(&self, credentials: &Credentials) -> Result<Myself, ClientError> {
        self.ask(Method::Post, "/api/session", Some(credentials)).await
    }

    /// Signs out.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sign_out(&self) -> Result<(), ClientError> {
        self.delete("/api/session").await
    }

    /// Begins to sign in at the issuer, or to link an identity there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn oidc_request(&self, request: &OidcRequest) -> Result<OidcRedirect, ClientError> {
        self.ask(Method::Post, "/api/oidc/request", Some(request)).await
    }

    /// Ends what [`Client::oidc_request`] began.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn oidc_response(&self, response: &OidcResponse) -> Result<Myself, ClientError> {
        self.ask(Method::Post, "/api/oidc/response", Some(response)).await
    }

    /// The identities by which one signs in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn identities(&self) -> Result<Vec<IdentityShown>, ClientError> {
        self.get("/api/identities").await
    }

    /// Unlinks one of them; all other browsers are signed out.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn unlink_identity(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/api/identities/{}", part(id))).await
    }

    /// The browsers in which one is signed in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sessions(&self) -> Result<Vec<SessionShown>, ClientError> {
        self.get("/api/sessions").await
    }

    /// Signs one of them out.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn end_session(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/api/sessions/{}", part(id))).await
    }

    /// One's own tokens.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn tokens(&self) -> Result<Vec<TokenShown>, ClientError> {
        self.get("/api/tokens").await
    }

    /// Makes a token.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_token(&self, new: &NewToken) -> Result<TokenMade, ClientError> {
        self.ask(Method::Post, "/api/tokens", Some(new)).await
    }

    /// Withdraws a token.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn withdraw_token(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/api/tokens/{}", part(id))).await
    }

    /// Replaces one's password; all other browsers are signed out.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_password(&self, change: &PasswordChange) -> Result<(), ClientError> {
        self.ask(Method::Put, "/api/password", Some(change)).await
    }

    /// All members of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn members(&self) -> Result<Vec<MemberShown>, ClientError> {
        self.get("/api/members").await
    }

    /// Changes what a member may do.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn change_member(&self, name: &str, change: &MemberChange) -> Result<MemberShown, ClientError> {
        let path = format!("/api/members/{}", part(name));
        self.ask(Method::Patch, &path, Some(change)).await
    }

    /// The open invitations to the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn invitations(&self) -> Result<Vec<InvitationShown>, ClientError> {
        self.get("/api/invitations").await
    }

    /// Invites somebody to the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn invite(&self, new: &NewInvitation) -> Result<InvitationMade, ClientError> {
        self.ask(Method::Post, "/api/invitations", Some(new)).await
    }

    /// Takes an invitation to the server back.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn withdraw_invitation(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/api/invitations/{}", part(id))).await
    }

    /// Follows an invitation and signs the new member in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn follow_invitation(&self, new: &NewMember) -> Result<Myself, ClientError> {
        self.ask(Method::Post, "/api/members", Some(new)).await
    }

    /// The audit log of the server, the latest lines first, or those before one of an id.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn audit(&self, before: Option<i64>) -> Result<Vec<EntryShown>, ClientError> {
        self.get(&before_of("/api/audit", before)).await
    }

    /// One's projects.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn projects(&self) -> Result<Vec<ProjectShown>, ClientError> {
        self.get("/api/projects").await
    }

    /// Makes a project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_project(&self, new: &NewProject) -> Result<ProjectShown, ClientError> {
        self.ask(Method::Post, "/api/projects", Some(new)).await
    }

    /// A project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn project(&self, project: &str) -> Result<ProjectShown, ClientError> {
        self.get(&of_project(project, "")).await
    }

    /// Gives a project another title.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn change_project(
        &self,
        project: &str,
        change: &ProjectChange,
    ) -> Result<ProjectShown, ClientError> {
        self.ask(Method::Patch, &of_project(project, ""), Some(change))
            .await
    }

    /// Deletes a project and all that is in it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_project(&self, project: &str) -> Result<(), ClientError> {
        self.delete(&of_project(project, "")).await
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

    /// Who has which role in a project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn project_members(&self, project: &str) -> Result<Vec<Membership>, ClientError> {
        self.get(&of_project(project, "/members")).await
    }

    /// Gives a member a role in a project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn set_role(&self, project: &str, member: &str, new: &NewRole) -> Result<(), ClientError> {
        let path = of_project(project, &format!("/members/{}", part(member)));
        self.ask(Method::Put, &path, Some(new)).await
    }

    /// Takes a member's role in a project away.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn remove_from_project(&self, project: &str, member: &str) -> Result<(), ClientError> {
        self.delete(&of_project(project, &format!("/members/{}", part(member))))
            .await
    }

    /// The open invitations to a project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn project_invitations(&self, project: &str) -> Result<Vec<InvitationShown>, ClientError> {
        self.get(&of_project(project, "/invitations")).await
    }

    /// Invites somebody to a project.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn invite_to_project(
        &self,
        project: &str,
        new: &NewRole,
    ) -> Result<InvitationMade, ClientError> {
        self.ask(Method::Post, &of_project(project, "/invitations"), Some(new))
            .await
    }

    /// Takes an invitation to a project back.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn withdraw_project_invitation(&self, project: &str, id: &str) -> Result<(), ClientError> {
        self.delete(&of_project(project, &format!("/invitations/{}", part(id))))
            .await
    }

    /// The audit log of a project, the latest lines first, or those before one of an id.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn project_audit(
        &self,
        project: &str,
        before: Option<i64>,
    ) -> Result<Vec<EntryShown>, ClientError> {
        self.get(&before_of(&of_project(project, "/audit"), before)).await
    }
}

impl<T: Transport> Client<T> {
    /// All shared keys.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn keys(&self) -> Result<Vec<KeyShown>, ClientError> {
        self.get("/api/keys").await
    }

    /// Adds a key.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_key(&self, new: &NewKey) -> Result<(), ClientError> {
        self.ask(Method::Post, "/api/keys", Some(new)).await
    }

    /// Says other things of a key, or replaces it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn change_key(&self, name: &str, change: &KeyChange) -> Result<(), ClientError> {
        let path = format!("/api/keys/{}", part(name));
        self.ask(Method::Put, &path, Some(change)).await
    }

    /// Takes a key away.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_key(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/api/keys/{}", part(name))).await
    }

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

    /// All limits.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn limits(&self) -> Result<Vec<LimitsShown>, ClientError> {
        self.get("/api/limits").await
    }

    /// What was consumed in the last so many days, today included.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn usage(&self, days: u16) -> Result<Vec<UsageShown>, ClientError> {
        self.get(&format!("/api/usage?days={days}")).await
    }

    /// The keys that a project may use.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn project_keys(&self, project: &str) -> Result<Vec<ProjectKey>, ClientError> {
        self.get(&of_project(project, "/keys")).await
    }
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

    /// A run with its study.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn run(&self, run: &str) -> Result<RunDetail, ClientError> {
        self.get(&of_run(run, "")).await
    }

    /// Starts a run. The project has its data files already, see [`Client::put_file`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_run(&self, project: &str, new: &NewRun) -> Result<RunShown, ClientError> {
        self.ask(Method::Post, &of_project(project, "/runs"), Some(new))
            .await
    }

    /// Gives a run another name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn change_run(&self, run: &str, change: &RunChange) -> Result<RunShown, ClientError> {
        self.ask(Method::Patch, &of_run(run, ""), Some(change)).await
    }

    /// Tells a run to do something.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn order_run(&self, run: &str, order: &RunOrder) -> Result<RunShown, ClientError> {
        self.ask(Method::Post, &of_run(run, "/orders"), Some(order)).await
    }

    /// Makes a run that shares the beginning of another.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn branch_run(&self, run: &str, new: &NewBranch) -> Result<RunShown, ClientError> {
        self.ask(Method::Post, &of_run(run, "/branches"), Some(new)).await
    }

    /// Deletes a run that is not running.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete_run(&self, run: &str) -> Result<(), ClientError> {
        self.delete(&of_run(run, "")).await
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
