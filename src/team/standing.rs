//! The server behind the page, and who is signed in.

use capo_api::{About, Client, ClientError, Myself, ProjectShown, Role};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::StorageEvent;

use super::words::sentence;
use super::{Fetch, Server};
use crate::storage::is_report;

/// What changes in the browser's storage when somebody signs in or out; nothing of it stays there.
const TOLD: &str = "capo.signed";
const IN: &str = "in";
const OUT: &str = "out";

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
        (error.status() == Some(401) && matches!(self, Self::SignedIn(_))).then_some(Self::SignedOut)
    }

    /// After the host was asked what it is: a server that is known and does not answer is one all the same.
    fn found(&self, found: Self) -> Option<Self> {
        let is_news = !self.is_server() || !matches!(found, Self::Unreached(_));
        is_news.then_some(found)
    }

    /// The name of who is signed in.
    pub fn member(&self) -> Option<&str> {
        match self {
            Self::SignedIn(myself) => Some(&myself.name),
            _ => None,
        }
    }

    /// Whether somebody is signed in, and somebody else was `before`.
    fn is_another_since(&self, before: &Self) -> bool {
        self.member().is_some() && before.member().is_some() && self.member() != before.member()
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
    /// Rises whenever that is asked or found out.
    found: StoredValue<u32>,
    changes: RwSignal<u32>,
    departures: RwSignal<u32>,
    /// `None` until they were asked for.
    projects: RwSignal<Option<Vec<ProjectShown>>>,
    /// The OpenID Connect issuer at which they can sign in, too, and whether members have accounts.
    doors: RwSignal<(Option<String>, bool)>,
}

impl Default for Team {
    /// Asks the host, unless this is a report, and nobody waits for what it says.
    fn default() -> Self {
        let team = Self {
            standing: RwSignal::new(Standing::Unknown),
            found: StoredValue::new(0),
            changes: RwSignal::new(0),
            departures: RwSignal::new(0),
            projects: RwSignal::new(None),
            doors: RwSignal::new((None, true)),
        };
        if is_report() {
            // Nobody is asked from there.
            team.standing.set(Standing::NoServer);
        } else {
            team.find_out();
        }
        team
    }
}

impl Team {
    /// Asks the host what it is, and who is signed in; what is known stands until it says so.
    pub fn find_out(self) {
        if matches!(self.standing_now(), Standing::Unreached(_)) {
            self.standing.set(Standing::Unknown);
        }
        // What was asked last counts.
        self.found.update_value(|found| *found += 1);
        let before = self.found.get_value();
        spawn_local(async move {
            let answer = self.server().about().await;
            let issuer = answer.as_ref().ok().and_then(|about| about.oidc.clone());
            let has_accounts = answer.as_ref().ok().map(|about| about.has_accounts);
            // Somebody may have signed in or out meanwhile.
            if self.found.get_value() == before
                && let Some(found) = self.standing_now().found(Standing::of(answer))
            {
                self.doors.update(|doors| {
                    *doors = (issuer, has_accounts.unwrap_or(doors.1));
                });
                self.stand(found);
            }
        });
    }

    /// Asks once more, unless no server stands there.
    pub fn look_again(self) {
        if self.standing_now() != Standing::NoServer {
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

    /// The name of who is signed in now; empty where nobody is.
    pub fn member(self) -> String {
        self.standing_now().member().unwrap_or_default().to_owned()
    }

    fn stand(self, standing: Standing) {
        let goes_on = self
            .standing
            .with_untracked(|before| before.member() == standing.member());
        self.found.update_value(|found| *found += 1);
        self.standing.set(standing);
        if !goes_on {
            self.projects.set(None);
        }
        self.read_projects();
    }

    /// Somebody has signed in.
    pub fn entered(self, myself: Myself) {
        self.stand(Standing::SignedIn(myself));
        tell_other_tabs(IN);
    }

    /// They have signed out. What this browser mirrors of the server's runs is the team's data: it is deleted then, and drafts
    /// with what they took from a project are.
    pub fn left(self) {
        self.stand(Standing::SignedOut);
        self.departures.update(|departures| *departures += 1);
        tell_other_tabs(OUT);
    }

    /// Rises whenever somebody signs out, in this tab or another; not when their session has ended by itself.
    pub fn departures(self) -> u32 {
        self.departures.get()
    }

    /// Hears what changes in the browser's storage: that somebody signed in or out in another tab.
    pub fn hear(self, event: &StorageEvent) {
        let Some(told) = event.new_value().filter(|_| event.key().as_deref() == Some(TOLD)) else {
            return;
        };
        if told == OUT {
            self.departures.update(|departures| *departures += 1);
        }
        self.look_again();
    }

    /// Reads one's projects anew. Where they cannot be read, those known stay.
    pub fn read_projects(self) {
        let asked = self.standing_now();
        if !matches!(asked, Standing::SignedIn(_)) {
            return;
        }
        spawn_local(async move {
            let read = self.request(async |server: Server| server.projects().await).await;
            if self.standing_now() != asked {
                return;
            }
            self.projects.update(|known| match read {
                Ok(projects) => *known = Some(projects),
                Err(_) => {
                    known.get_or_insert_default();
                }
            });
        });
    }

    /// Whether one's projects were asked for, be it in vain; a reactive caller is told of changes.
    pub fn knows_projects(self) -> bool {
        self.projects.with(Option::is_some)
    }

    /// One's projects as far as they are known; a reactive caller is told of changes.
    pub fn projects(self) -> Vec<ProjectShown> {
        self.projects.get().unwrap_or_default()
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
            let found = projects.iter().flatten().find(|known| known.name == project);
            found.map(|found| found.role)
        })
    }

    /// What people call the OpenID Connect issuer at which they can sign in, too; a reactive caller is told of changes.
    pub fn issuer(self) -> Option<String> {
        self.doors.with(|(issuer, _)| issuer.clone())
    }

    /// Whether members have accounts here; else they sign in with tokens, and there are runs and shared keys alone. A reactive
    /// caller is told of changes.
    pub fn has_accounts(self) -> bool {
        self.doors.with(|(_, has_accounts)| *has_accounts)
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

    /// The same, and why not as the server says it. What it answered to somebody else is not for whoever is signed in now.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn request<A>(
        self,
        request: impl AsyncFnOnce(Server) -> Result<A, ClientError>,
    ) -> Result<A, ClientError> {
        let before = self.standing_now();
        let answer = request(self.server()).await;
        if self
            .standing
            .with_untracked(|standing| standing.is_another_since(&before))
        {
            return Err(ClientError::Unreached("somebody else has signed in since".into()));
        }
        if let Err(error) = &answer
            && let Some(standing) = self.standing.with_untracked(|standing| standing.after(error))
        {
            self.stand(standing);
        }
        answer
    }
}

/// Has them ask who is signed in: they hear of what changes in the browser's storage. Those of a browser that refuses it
/// ask when somebody looks at them.
fn tell_other_tabs(told: &str) {
    if let Ok(Some(storage)) = window().local_storage() {
        let _ = storage
            .set_item(TOLD, told)
            .and_then(|()| storage.remove_item(TOLD));
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
            has_password: true,
        }
    }

    #[test]
    fn what_stands_behind_the_page_is_read_off_what_the_host_says() {
        let said = |is_set_up, has_accounts, member| {
            let version = "0.1.0".into();
            Standing::of(Ok(About {
                version,
                is_set_up,
                oidc: None,
                has_accounts,
                member,
            }))
        };
        let about = |is_set_up, member| said(is_set_up, true, member);
        assert_eq!(about(false, None), Standing::NotSetUp);
        assert_eq!(about(true, None), Standing::SignedOut);
        assert_eq!(about(true, Some(ada())), Standing::SignedIn(ada()));
        assert_eq!(said(true, false, Some(ada())), Standing::SignedIn(ada()));
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
    fn who_is_signed_in_stays_so_while_the_server_does_not_answer() {
        let lost = || Standing::Unreached("No answer came.".into());
        assert_eq!(Standing::SignedIn(ada()).found(lost()), None);
        assert_eq!(Standing::Unknown.found(lost()), Some(lost()));
        let out = Standing::SignedIn(ada()).found(Standing::SignedOut);
        assert_eq!(out, Some(Standing::SignedOut));
    }

    #[test]
    fn who_is_refused_as_unknown_is_signed_out() {
        let here = Standing::SignedIn(ada());
        assert_eq!(here.after(&refused(401)), Some(Standing::SignedOut));
        assert_eq!(here.after(&refused(403)), None);
        assert_eq!(here.after(&ClientError::Unreached("no answer came".into())), None);
        assert_eq!(Standing::SignedOut.after(&refused(401)), None);
    }

    #[test]
    fn what_one_member_asked_for_is_not_for_the_next() {
        let bea = Standing::SignedIn(Myself {
            name: "bea".into(),
            ..ada()
        });
        let ada = Standing::SignedIn(ada());
        assert!(bea.is_another_since(&ada) && !ada.is_another_since(&ada));
        // Who signs in, or out, hears what came of it.
        assert!(!ada.is_another_since(&Standing::SignedOut) && !Standing::SignedOut.is_another_since(&ada));
    }
}
