//! Trainings are claimed, their processes begun and told what people tell them, and their logs copied.

use std::convert::Infallible;
use std::path::Path;

use capo_api::{TrainingKind, TrainingState};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::child::{self, Ended, News};
use super::folder::forget;
use super::input::{Ready, prepare};
use super::keeper::Keeper;
use super::log::{Log, log_file};
use super::{Job, LOCK, Trainings};
use crate::http::Server;
use crate::shared_keys::{self, GATE};
use crate::store::{Lease, NotKept, StoreError, Training, TrainingOutcome, in_millis};
use crate::worker::{LOOK, Pass, open_proxy};

/// What is told of a training's end beside its own outcome.
const UNKEPT: &str = "the last checkpoints could not be kept where data files lie, and are in the training's folder alone; the \
                      server's log says why. Resume the training to keep them";

/// Works on trainings until `ending` is done; those under way then end in good order, and wait for the next start.
///
/// # Errors
/// When no port of this machine is free for the proxy by which they ask models.
pub async fn train(server: Server, ending: impl Future<Output = ()>) -> std::io::Result<()> {
    let Some(trainings) = server.trainings().cloned() else {
        return Ok(());
    };
    let (origin, proxy) = open_proxy(&server).await?;
    let (tell, told) = watch::channel(false);
    let mut under_way = JoinSet::new();
    let mut ending = std::pin::pin!(ending);
    loop {
        while under_way.len() < trainings.at_once {
            let now = server.now();
            match server
                .store()
                .claim_training(now, now + in_millis(trainings.lease))
                .await
            {
                Ok(Some((lease, training))) => {
                    tracing::info!(
                        training = training.id,
                        name = training.name,
                        "a training begins or goes on"
                    );
                    let attended = attend(
                        server.clone(),
                        trainings.clone(),
                        origin.clone(),
                        (lease, training),
                        told.clone(),
                    );
                    under_way.spawn(attended);
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(%error, "no training could be claimed");
                    break;
                }
            }
        }
        tokio::select! {
            () = &mut ending => break,
            () = tokio::time::sleep(LOOK) => {}
            Some(done) = under_way.join_next() => if let Err(error) = done {
                tracing::error!(%error, "who attended a training broke down");
            }
        }
    }
    // Whoever attends one still reads it.
    tell.send_replace(true);
    while under_way.join_next().await.is_some() {}
    proxy.abort();
    Ok(())
}

/// What came of a training.
enum Carried {
    Left(TrainingOutcome),
    /// Whoever has claimed it says what becomes of it.
    Lost,
}

fn failed(error: impl Into<String>) -> Carried {
    Carried::Left(TrainingOutcome {
        state: TrainingState::Failed,
        error: Some(error.into()),
        in_order: false,
    })
}

/// Has a training carried out, and leaves it as it ends.
async fn attend(
    server: Server,
    trainings: Trainings,
    origin: String,
    (lease, training): (Lease, Training),
    ending: watch::Receiver<bool>,
) {
    let folder = trainings.folder_of(&training.id);
    let pass = Pass::of(&server, &training.member, &training.project);
    let news = watch::Sender::new(News::default());
    let carried = tokio::select! {
        carried = carry_out(&server, &trainings, &origin, (&lease, &training), &pass, &news) => carried,
        never = listen(&server, &trainings, &lease, &news, ending) => match never {},
    };
    drop(pass);
    match carried {
        Carried::Left(left) => {
            let left = TrainingOutcome {
                // Of where things lie here only what is its own is told.
                error: left.error.map(|error| of_its_own(&error, &folder)),
                ..left
            };
            tracing::info!(training = training.id, state = ?left.state, error = left.error, "a training was left");
            if let Err(error) = server.store().leave_training(&lease, &left, server.now()).await {
                tracing::warn!(training = training.id, %error, "how a training was left could not be written");
            }
        }
        Carried::Lost => {
            let gone = server.store().training(&training.id).await;
            if matches!(gone, Err(StoreError::Missing(_))) {
                forget(&folder).await;
            }
        }
    }
}

/// An error without where things lie on this machine, and without the command that somebody there would go on with.
fn of_its_own(error: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let error = error
        .replace(&format!("{folder}/"), "")
        .replace(&folder, "its folder");
    let lines = error.lines().filter(|line| !line.contains("to go on, run:"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Renews a lease for as long as it is polled, and hands on what the training is told.
async fn listen(
    server: &Server,
    trainings: &Trainings,
    of: &Lease,
    news: &watch::Sender<News>,
    mut ending: watch::Receiver<bool>,
) -> Infallible {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            Ok(_) = ending.wait_for(|ends| *ends), if !news.borrow().ending => {
                news.send_modify(|news| news.ending = true);
            }
        }
        match server
            .store()
            .renew_training(of, server.now() + in_millis(trainings.lease))
            .await
        {
            Ok(stopped) => {
                news.send_if_modified(|news| std::mem::replace(&mut news.stopped, stopped) != stopped);
            }
            Err(NotKept::Lost) => {
                news.send_modify(|news| news.lost = true);
            }
            // Until the lease ends it may get better.
            Err(NotKept::Store(error)) => {
                tracing::warn!(training = of.id, %error, "a training could not be looked after");
            }
        }
    }
}

/// Makes what the training starts from, and then the training itself.
async fn carry_out(
    server: &Server,
    trainings: &Trainings,
    origin: &str,
    (lease, training): (&Lease, &Training),
    pass: &Pass,
    news: &watch::Sender<News>,
) -> Carried {
    let folder = trainings.folder_of(&training.id);
    // One may be left that the training never came to anything in.
    if training.reached > 0 && !folder.join(log_file(training.kind)).is_file() {
        return failed(format!(
            "the folder of the training is not on this machine: {} is missing",
            folder.display()
        ));
    }
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return failed(format!("{}: {error}", folder.display()));
    }
    if let Some(left) = until_free(&folder, news).await {
        return left;
    }
    let Ready { job, model } = match prepare(server, trainings, training).await {
        Ok(ready) => ready,
        Err(error) => return failed(error),
    };
    if let Some((begin, new)) = model
        && let Some(command) = trainings.trainer.model(&begin, &job.journals, &new)
    {
        let ended = child::run(command, news.subscribe(), None).await;
        let told = *news.borrow();
        match ended {
            _ if told != News::default() => return at_rest(told),
            Ok(ended) if ended.status.success() => {
                if let Err(error) = std::fs::rename(&new, &job.model) {
                    return failed(format!("{}: {error}", job.model.display()));
                }
            }
            ended => return left(ended, told, training.kind),
        }
    }
    if let Some(left) = without_checkpoints(server, trainings, training).await {
        return left;
    }
    if let Err(error) = trainings.trainer.rewind(&folder) {
        return failed(error);
    }
    let mut log = match Log::open(server, training, lease, &folder).await {
        Ok(log) => log,
        Err(error) => return not_kept(training, &error),
    };
    let command = match command(server, trainings, training, &job, (origin, pass)).await {
        Ok(command) => command,
        Err(error) => return not_kept(training, &error.into()),
    };
    let (tell, over) = watch::channel(false);
    let work = async {
        let ended = child::run(command, news.subscribe(), Some(&mut log)).await;
        log.copy().await?;
        // Also where nothing came since it was noted last, or could not be.
        log.note().await?;
        tell.send_replace(true);
        Ok::<_, NotKept>(ended)
    };
    let keeper = Keeper {
        server,
        trainings,
        training,
        lease,
    };
    let keeping = async { Ok::<_, NotKept>(keeper.keep(over, news.subscribe()).await) };
    match tokio::try_join!(work, keeping) {
        Ok((ended, are_kept)) => {
            let carried = left(ended, *news.borrow(), training.kind);
            if are_kept { carried } else { partly_kept(carried) }
        }
        Err(error) => not_kept(training, &error),
    }
}

/// Refuses to begin a training anew that had come to checkpoints, and whose folder has none.
async fn without_checkpoints(server: &Server, trainings: &Trainings, training: &Training) -> Option<Carried> {
    let kept = match server.store().checkpoints(&training.id).await {
        Ok(kept) => kept,
        Err(error) => return Some(not_kept(training, &error.into())),
    };
    let last = kept.last()?.shown.step;
    match trainings.checkpoints(&training.id).await {
        Ok(there) if there.is_empty() => Some(failed(format!(
            "the training had come to a checkpoint of step {last}, and its folder has none any more: put them back, or \
             start another training from what is kept of this one"
        ))),
        Ok(_) => None,
        Err(error) => Some(failed(error)),
    }
}

/// How a training is left whose last checkpoints could not be kept; whoever goes on with it keeps them.
fn partly_kept(carried: Carried) -> Carried {
    match carried {
        Carried::Left(left) if left.state != TrainingState::Queued => {
            let own = left.error.map_or_else(String::new, |error| format!("{error}\n"));
            Carried::Left(TrainingOutcome {
                error: Some(own + UNKEPT),
                ..left
            })
        }
        carried => carried,
    }
}

/// The command of a training; one that asks models learns from its environment alone how.
async fn command(
    server: &Server,
    trainings: &Trainings,
    training: &Training,
    job: &Job,
    (origin, pass): (&str, &Pass),
) -> Result<std::process::Command, StoreError> {
    let mut command = trainings.trainer.command(job);
    if training.kind == TrainingKind::Grpo {
        let keys = shared_keys::of_project(server.store(), &training.project, origin, pass.pass()).await?;
        command.env(GATE, shared_keys::to_variable(&keys));
    }
    Ok(command)
}

/// Waits until no process works in a folder any more: of a server that was killed one may still write its last checkpoint.
async fn until_free(folder: &Path, news: &watch::Sender<News>) -> Option<Carried> {
    let path = folder.join(LOCK);
    let began = Instant::now();
    loop {
        let held = std::fs::File::create(&path).map(|file| file.try_lock());
        match held {
            Ok(Ok(())) => return None,
            Ok(Err(std::fs::TryLockError::WouldBlock)) => {}
            Ok(Err(std::fs::TryLockError::Error(error))) | Err(error) => {
                return Some(failed(format!("{}: {error}", path.display())));
            }
        }
        let told = *news.borrow();
        if told != News::default() {
            return Some(at_rest(told));
        }
        if began.elapsed() < LOOK {
            tracing::info!(folder = %folder.display(), "another process still works in the folder of a training");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How a training is left that was told to end.
fn at_rest(told: News) -> Carried {
    if told.lost {
        return Carried::Lost;
    }
    Carried::Left(TrainingOutcome {
        state: if told.stopped {
            TrainingState::Stopped
        } else {
            TrainingState::Queued
        },
        error: None,
        in_order: true,
    })
}

/// The database does not answer, or another process has claimed the training, which whoever claims it takes up again.
fn not_kept(training: &Training, error: &NotKept) -> Carried {
    tracing::warn!(training = training.id, %error, "a training was let go of");
    Carried::Lost
}

/// How a training is left whose process ended so.
fn left(ended: std::io::Result<Ended>, told: News, kind: TrainingKind) -> Carried {
    let Ended { status, words } = match ended {
        Ok(ended) => ended,
        Err(error) => return failed(format!("the system begins no process: {error}")),
    };
    let done = |state| {
        Carried::Left(TrainingOutcome {
            state,
            error: None,
            in_order: true,
        })
    };
    match status.code() {
        _ if told.lost => Carried::Lost,
        Some(0) => done(TrainingState::Done),
        // No prompt found that holds; the rewriter has learned all the same.
        Some(2) if kind == TrainingKind::Grpo => done(TrainingState::Done),
        Some(3) if told != News::default() => at_rest(told),
        // Its budget is spent.
        Some(3) => done(TrainingState::Stopped),
        // It broke down, or was killed, and goes on with the same command.
        None | Some(101) => {
            tracing::warn!(%status, words, "the process of a training broke down");
            Carried::Left(TrainingOutcome {
                state: TrainingState::Queued,
                error: None,
                in_order: false,
            })
        }
        Some(_) if words.is_empty() => failed(format!("its process ended with {status}")),
        Some(_) => failed(words.trim_start_matches("error: ")),
    }
}
