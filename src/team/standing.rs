//! What stands behind the page, and who is signed in.

use capo_api::{About, Client, ClientError, Myself, ProjectShown, Role};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::words::sentence;
use super::{Fetch, Server};

/// What stands behind the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Not known yet.
    Unknown,
    /// Not known, and why: nothing came back, or the server cannot say.
    Unreached(String),
    /// A host with files that knows nothing of teams.
    NoServer,
    /// A server without members.
    NotSetUp,
    /// A server that knows nobody in this browser.
    SignedOut,
    /// A server that knows who this is.
    SignedIn(Myself),
}

impl Standing {
    fn of(answer: Result<About, ClientError>) -> Self {
        match answer {
            Ok(About {
                member: Some(myself), ..
            }) => Self::SignedIn(myself),
            Ok(about) if about.is_set_up => Self::SignedOut,
            Ok(_) => Self::NotSetUp,
            // A proxy whose server is away answers in its stead.
            Err(ClientError::UnexpectedAnswer { status }) if status < 500 && status != 429 => Self::NoServer,
            Err(error) => Self::Unreached(sentence(&error)),
        }
    }

    /// After a request that failed so.
    fn after(&self, error: &ClientError) -> Option<Self> {
        let is_over = matches!(error, ClientError::Refused(problem) if problem.status == 401);
        (is_over && matches!(self, Self::SignedIn(_))).then_some(Self::SignedOut)
    }

    /// Whether it is a team server.
    pub fn is_server(&self) -> bool {
        matches!(self, Self::NotSetUp | Self::SignedOut | Self::SignedIn(_))
    }
}

/// The server behind the page, for all pages.
#[derive(Clone, Copy)]
pub struct Team {
    standing: RwSignal<Standing>,
    changes: RwSignal<u32>,
    projects: RwSignal<Vec<ProjectShown>>,
}

impl Default for Team {
    /// Asks the host, and nobody waits for what it says.
    fn default() -> Self {
        let team = Self {
            standing: RwSignal::new(Standing::Unknown),
            changes: RwSignal::new(0),
            projects: RwSignal::new(Vec::new()),
        };
        team.find_out();
        team
    }
}

impl Team {
    /// Asks the host what it is.
    pub fn find_out(self) {
        self.standing.set(Standing::Unknown);
        spawn_local(async move {
            let answer = self.server().about().await;
            self.stand(Standing::of(answer));
        });
    }

    /// Asks once more, unless it is known.
    pub fn find_out_if_unreached(self) {
        if matches!(self.standing.get_untracked(), Standing::Unreached(_)) {
            self.find_out();
        }
    }

    /// What is known; a reactive caller is told of changes.
    pub fn standing(self) -> Memo<Standing> {
        Memo::new(move |_| self.standing.get())
    }

    /// The same without telling the caller of changes.
    pub fn standing_now(self) -> Standing {
        self.standing.get_untracked()
    }

    fn stand(self, standing: Standing) {
        let is_in = matches!(standing, Standing::SignedIn(_));
        self.standing.set(standing);
        if is_in {
            self.read_projects();
        } else {
            self.projects.set(Vec::new());
        }
    }

    /// Somebody has signed in.
    pub fn entered(self, myself: Myself) {
        self.stand(Standing::SignedIn(myself));
    }

    /// They have signed out. What this browser mirrors of the server's runs is the team's data: it is deleted then, see
    /// [`Runs`](crate::live::Runs).
    pub fn left(self) {
        self.stand(Standing::SignedOut);
    }

    /// Reads one's projects anew. Where they cannot be read, those known stay.
    pub fn read_projects(self) {
        if !matches!(self.standing_now(), Standing::SignedIn(_)) {
            return;
        }
        spawn_local(async move {
            if let Ok(projects) = self.request(async |server: Server| server.projects().await).await
                && matches!(self.standing_now(), Standing::SignedIn(_))
            {
                self.projects.set(projects);
            }
        });
    }

    /// One's projects as far as they are known; a reactive caller is told of changes.
    pub fn projects(self) -> Vec<ProjectShown> {
        self.projects.get()
    }

    /// Those in which one may run studies.
    pub fn workplaces(self) -> Vec<ProjectShown> {
        let mut projects = self.projects();
        projects.retain(|project| project.role >= Role::Editor);
        projects
    }

    /// One's role in a project, as far as it is known.
    pub fn role(self, project: &str) -> Option<Role> {
        self.projects.with(|projects| {
            let found = projects.iter().find(|known| known.name == project);
            found.map(|found| found.role)
        })
    }

    /// Rises with everything that is changed on the server from here.
    pub fn changes(self) -> u32 {
        self.changes.get()
    }

    fn server(self) -> Server {
        Client::new(Fetch {
            changes: self.changes,
        })
    }

    /// Asks the server. Who is not known to it any more is signed out here, too.
    ///
    /// # Errors
    /// Why it does not answer so, in words.
    pub async fn ask<A>(
        self,
        request: impl AsyncFnOnce(Server) -> Result<A, ClientError>,
    ) -> Result<A, String> {
        self.request(request).await.map_err(|error| sentence(&error))
    }

    /// The same, and why not as the server says it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn request<A>(
        self,
        request: impl AsyncFnOnce(Server) -> Result<A, ClientError>,
    ) -> Result<A, ClientError> {
        let answer = request(self.server()).await;
        if let Err(error) = &answer
            && let Some(standing) = self.standing.with_untracked(|standing| standing.after(error))
        {
            self.stand(standing);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use capo_api::Problem;

    use super::*;

    fn refused(status: u16) -> ClientError {
        ClientError::Refused(Problem {
            kind: "/problems/any".into(),
            title: "Any".into(),
            status,
            detail: "The database does not answer.".into(),
            retry_after: None,
        })
    }

    fn ada() -> Myself {
        Myself {
            name: "ada".into(),
            is_admin: false,
        }
    }

    #[test]
    fn what_stands_behind_the_page_is_read_off_what_the_host_says() {
        let about = |is_set_up, member| {
            let version = "0.1.0".into();
            Standing::of(Ok(About {
                version,
                is_set_up,
                member,
            }))
        };
        assert_eq!(about(false, None), Standing::NotSetUp);
        assert_eq!(about(true, None), Standing::SignedOut);
        assert_eq!(about(true, Some(ada())), Standing::SignedIn(ada()));
        let page = Standing::of(Err(ClientError::UnexpectedAnswer { status: 200 }));
        assert_eq!(page, Standing::NoServer);
        let offline = Standing::of(Err(ClientError::Unreached("there is no network".into())));
        assert!(matches!(offline, Standing::Unreached(_)) && !offline.is_server() && !page.is_server());
        let Standing::Unreached(why) = Standing::of(Err(refused(503))) else {
            panic!("a server that cannot say is none to sign in to");
        };
        assert_eq!(why, "The database does not answer.");
    }

    #[test]
    fn who_is_refused_as_unknown_is_signed_out() {
        let here = Standing::SignedIn(ada());
        assert_eq!(here.after(&refused(401)), Some(Standing::SignedOut));
        assert_eq!(here.after(&refused(403)), None);
        assert_eq!(here.after(&ClientError::Unreached("no answer came".into())), None);
        assert_eq!(Standing::SignedOut.after(&refused(401)), None);
    }
}
