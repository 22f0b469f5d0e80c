//! Workers: they claim runs, carry each out on a thread of its own, and hear what people tell it.

mod carry_out;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capo_core::reading::progress::{Progress, Times};
use capo_hosted::{RUNS_OF_MEMBER, Waits};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use self::carry_out::{Carried, carry_out};
use self::rows::Database;
use crate::http::{Server, proxy_router};
use crate::secret::Secret;
use crate::store::{Instructions, Lease, NotKept, Run, RunOutcome, in_millis};
use crate::telemetry::UnderWay;

/// How often somebody looks whether a run or a training waits, or was told something.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// How a worker works.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// Runs at a time.
    pub runs: usize,
    /// Runs of one member at a time, on all workers together.
    pub runs_of_member: u32,
    /// How long a run is a worker's unless that renews it, which it does six times as often.
    pub lease: Duration,
}

impl Default for WorkerSettings {
    /// Runs wait for models most of the time.
    fn default() -> Self {
        Self {
            runs: 16,
            runs_of_member: RUNS_OF_MEMBER,
            lease: Duration::from_secs(30),
        }
    }
}

/// What the thread of a run and the tasks around it tell each other.
#[derive(Debug, Default)]
struct Shared {
    news: Mutex<News>,
    /// There are news for the thread.
    told: Notify,
}

#[derive(Debug, Default)]
struct News {
    /// What the run was told, until its thread takes it.
    told: Option<Instructions>,
    /// The server ends: the run is to be left to the next.
    is_ending: bool,
    /// Another worker has the run.
    is_lost: bool,
    /// What lists are to show of it, until that is written.
    figures: Option<(Progress, Times)>,
    /// The model that it waits for, until that is written.
    waits: Option<Waits>,
}

impl News {
    /// Whether what models in this process have under way is to end.
    fn is_to_end(&self) -> bool {
        self.is_ending || self.is_lost || self.told.as_ref().is_some_and(|told| told.wish.is_some())
    }
}

impl Shared {
    fn change<T>(&self, change: impl FnOnce(&mut News) -> T) -> T {
        // Nothing panics while it has it.
        change(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        self.change(change);
        self.told.notify_one();
    }
}

/// Works on runs until `ending` is done; those under way are then left, each where its journal ends, to whoever claims them
/// next.
///
/// # Errors
/// When no port of this machine is free for the proxy by which runs ask models.
pub async fn work(
    server: Server,
    settings: WorkerSettings,
    ending: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (origin, proxy) = open_proxy(&server).await?;
    let mut under_way = JoinSet::new();
    let mut shared: HashMap<Lease, Arc<Shared>> = HashMap::new();
    let mut ending = std::pin::pin!(ending);
    loop {
        while under_way.len() < settings.runs {
            let now = server.now();
            let claimed = server
                .store()
                .claim(now, now + in_millis(settings.lease), settings.runs_of_member)
                .await;
            let (lease, run) = match claimed {
                Ok(Some(claimed)) => claimed,
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(%error, "no run could be claimed");
                    break;
                }
            };
            tracing::info!(run = run.id, name = run.name, "a run begins or goes on");
            let news = Arc::new(Shared::default());
            shared.insert(lease.clone(), Arc::clone(&news));
            under_way.spawn(attend(server.clone(), settings, origin.clone(), lease, run, news));
        }
        tokio::select! {
            () = &mut ending => break,
            () = server.runs_changed() => {}
            () = tokio::time::sleep(LOOK) => {}
            Some(done) = under_way.join_next() => match done {
                Ok(lease) => drop(shared.remove(&lease)),
                Err(error) => tracing::error!(%error, "who attended a run broke down"),
            }
        }
    }
    for shared in shared.values() {
        shared.tell(|news| news.is_ending = true);
    }
    while under_way.join_next().await.is_some() {}
    proxy.abort();
    Ok(())
}

/// Opens the proxy by which what works here asks models: on its own port, which nobody reaches from elsewhere, and which no
/// reverse proxy stands before. Returns its origin.
///
/// # Errors
/// When no port of this machine is free.
pub(crate) async fn open_proxy(
    server: &Server,
) -> std::io::Result<(String, JoinHandle<std::io::Result<()>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let proxy = axum::serve(listener, proxy_router(server.clone()));
    Ok((origin, tokio::spawn(proxy.into_future())))
}

/// The pass by which a run or a training asks models, which ends with it.
pub(crate) struct Pass(Server, Secret);

impl Pass {
    /// On the account of a member and a project, by their ids.
    pub(crate) fn of(server: &Server, member: &str, project: &str) -> Self {
        Self(server.clone(), server.issue_pass(member, project))
    }

    /// The pass itself.
    pub(crate) fn pass(&self) -> &str {
        self.1.reveal()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.dismiss(&self.1);
    }
}

/// Has a run carried out, and leaves it as it ends. Returns the lease.
async fn attend(
    server: Server,
    settings: WorkerSettings,
    origin: String,
    lease: Lease,
    run: Run,
    shared: Arc<Shared>,
) -> Lease {
    let id = run.id.clone();
    let _under_way = UnderWay::begin();
    let pass = Pass::of(&server, &run.member, &run.project);
    // What it was told before somebody claimed it.
    if let Ok(told) = server.store().instructions(&lease).await {
        shared.tell(|news| news.told = Some(told));
    }
    let (done, ended) = tokio::sync::oneshot::channel();
    let database = Database {
        handle: tokio::runtime::Handle::current(),
        store: server.store().clone(),
    };
    let thread = {
        let (server, lease, shared, pass) =
            (server.clone(), lease.clone(), Arc::clone(&shared), pass.1.clone());
        std::thread::Builder::new().name("run".into()).spawn(move || {
            let carried = carry_out(&server, &database, &lease, run, &origin, &pass, &shared);
            // Who waits for it may have been aborted.
            let _ = done.send(carried);
        })
    };
    let carried = match thread {
        Ok(_) => {
            tokio::select! {
                // Dropped without a word by a thread that panicked.
                carried = ended => carried.unwrap_or_else(|_| Carried::Failed(
                    "the run broke down; the server's log says where. What is finished is kept".into(),
                )),
                never = listen(&server, settings, &lease, &shared) => match never {},
            }
        }
        Err(error) => Carried::Failed(format!("the system gives no thread: {error}")),
    };
    drop(pass);
    write_figures(&server, &lease, &shared).await;
    let left = match carried {
        // Whoever has claimed it says what becomes of it.
        Carried::Lost => None,
        Carried::Left(left) => Some(left),
        Carried::Failed(error) => Some(RunOutcome {
            stage: capo_api::RunStage::Failed,
            status: None,
            error: Some(error),
            tested: None,
        }),
    };
    if let Some(left) = left {
        tracing::info!(run = id, stage = ?left.stage, "a run was left");
        if let Err(error) = server.store().leave(&lease, &left, server.now()).await {
            tracing::warn!(run = id, %error, "how a run was left could not be written; it is claimed again");
        }
    }
    server.tell_of_runs();
    lease
}

/// Renews a lease for as long as it is polled, hands on what the run is told, and writes what is shown of it.
async fn listen(server: &Server, settings: WorkerSettings, lease: &Lease, shared: &Shared) -> Infallible {
    let mut renewed = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        let is_due = renewed.elapsed() >= settings.lease / 6;
        let told = if is_due {
            server
                .store()
                .renew(lease, server.now() + in_millis(settings.lease))
                .await
        } else {
            server.store().instructions(lease).await
        };
        match told {
            Ok(told) => {
                if is_due {
                    renewed = tokio::time::Instant::now();
                }
                shared.tell(|news| news.told = Some(told));
            }
            Err(NotKept::Lost) => shared.tell(|news| news.is_lost = true),
            // Until the lease ends it may get better.
            Err(NotKept::Store(error)) => {
                tracing::warn!(run = lease.id, %error, "a run could not be looked after");
            }
        }
        write_figures(server, lease, shared).await;
    }
}

async fn write_figures(server: &Server, lease: &Lease, shared: &Shared) {
    let (figures, waits) = shared.change(|news| (news.figures.take(), news.waits.take()));
    let noted = async {
        if let Some(waits) = waits {
            server.store().note_waits(lease, &waits).await?;
        }
        match figures {
            Some((progress, times)) => server.store().note(lease, &progress, &times).await,
            None => Ok(()),
        }
    };
    if let Err(error) = noted.await {
        tracing::debug!(run = lease.id, %error, "the figures of a run could not be written");
    }
}
