//! Ctrl-C: the first one ends a run in good order within two seconds, or once a batch is handed in; the second one at once.

use std::io;
use std::thread;
use std::time::Duration;

use capo_core::control::Control;
use tokio::sync::{Notify, watch};

use crate::stderr::warn;

/// Exit code of a process that was told twice to end and does not: as for a run that was stopped.
const STOPPED: i32 = 3;

/// How long a process that was told twice may take to put its affairs in order: to end the commands
/// it has started, and to write down what has been answered.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long calls under way may still be answered once an end is asked for. Many are answered by
/// then, and nobody waits for longer dialogues.
pub(crate) const MOMENT: Duration = Duration::from_millis(1500);

/// How often it is looked whether a batch is handed in.
const GLANCE: Duration = Duration::from_millis(50);

/// How long a run whose end is insisted on may take to write down what it had under way.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Whoever started this process has closed its standard input, or is no more.
static CLOSED: Notify = Notify::const_new();

/// From now on the end of standard input asks for an end, as the first Ctrl-C does.
///
/// # Errors
/// When the system gives no thread.
#[cfg(feature = "train")]
pub(crate) fn heed_standard_input() -> io::Result<()> {
    let wait = || {
        // Whether it ends or breaks off.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        CLOSED.notify_one();
    };
    thread::Builder::new().name("standard input".into()).spawn(wait)?;
    Ok(())
}

/// Knows how often the person has asked for an end. Clones know the same.
#[derive(Debug, Clone)]
pub struct Interrupts {
    heard: watch::Receiver<u32>,
}

impl Interrupts {
    /// Listens from now on, for Ctrl-C and for the signal that service managers send. `said` is
    /// called at the first one. After the second one the process has a second to end by itself,
    /// see [`Interrupts::insisted`]; then, or at the third one, it is ended.
    ///
    /// A thread of its own listens: a run over models in this process may keep its own thread busy
    /// for long.
    ///
    /// # Errors
    /// When the system gives no thread or no signals.
    pub fn listen(said: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Registered once and before anybody can be told that this process listens: a signal that
        // arrives between two registrations would be lost.
        let mut signals = {
            let _entered = runtime.enter();
            Signals::register()?
        };
        let (tell, heard) = watch::channel(0);
        thread::Builder::new().name("interrupts".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = signals.next() => {}
                    () = CLOSED.notified() => {}
                }
                tell.send_replace(1);
                said();
                signals.next().await;
                tell.send_replace(2);
                // Either way it is time.
                let _ = tokio::time::timeout(PATIENCE, signals.next()).await;
                std::process::exit(STOPPED);
            });
        })?;
        Ok(Self { heard })
    }

    /// [`Interrupts::listen`] for a run that the command `resume` carries on, which the person is
    /// told.
    ///
    /// # Errors
    /// As [`Interrupts::listen`].
    pub fn of_run(resume: String) -> io::Result<Self> {
        Self::listen(move || {
            warn(&format!(
                "interrupted: calls under way have {} s to be answered, then they are dropped; once more \
                 to leave at once.\nWhat is finished is kept. To go on, run: {resume}",
                MOMENT.as_secs_f64()
            ));
        })
    }

    /// Carries out a run that `control` steers. When an end is asked for, it starts nothing new, and
    /// a moment later, or when it is insisted on, what is under way is dropped, so that it ends by itself. A batch that is
    /// being handed in is not dropped before, unless that is insisted on.
    /// A run that does not even then is dropped: `None`. Dropping it ends the commands it has started, and
    /// writes out its journal.
    pub async fn carry_out<T>(&self, control: Control, run: impl Future<Output = T>) -> Option<T> {
        let steering = async {
            self.asked().await;
            control.interrupt();
            // Whoever insists waits for no moment.
            let mut insists = tokio::time::timeout(MOMENT, self.insisted()).await.is_ok();
            while !insists && control.is_handing_in() {
                insists = tokio::time::timeout(GLANCE, self.insisted()).await.is_ok();
            }
            control.abandon();
            if !insists {
                self.insisted().await;
            }
            // What is under way is dropped by now, and written down as spent.
            tokio::time::sleep(LAST_MOMENT).await;
        };
        tokio::select! {
            outcome = run => Some(outcome),
            () = steering => None,
        }
    }

    /// Whether an end was asked for.
    pub fn is_asked(&self) -> bool {
        *self.heard.borrow() > 0
    }

    /// Waits until an end is asked for.
    pub async fn asked(&self) {
        self.times(1).await;
    }

    /// Waits until an end is asked for a second time: what is under way is to be dropped. Whoever
    /// waits must let go of it, for it may hold commands that would outlive this process.
    pub async fn insisted(&self) {
        self.times(2).await;
    }

    async fn times(&self, count: u32) {
        let mut heard = self.heard.clone();
        // The listening thread ends with the process alone.
        if heard.wait_for(|heard| *heard >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn register() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn register() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use capo_core::batches::Batches;

    use super::*;

    #[tokio::test]
    async fn a_run_is_let_end_then_told_to_drop_what_is_under_way_and_dropped_when_that_is_insisted_on() {
        let (tell, heard) = watch::channel(0);
        let interrupts = Interrupts { heard };
        let whole = interrupts.carry_out(Control::new(), async { 1 }).await;
        assert_eq!(whole, Some(1), "nobody asked");

        tell.send_replace(1);
        let control = Control::new();
        let begun = tokio::time::Instant::now();
        let ended = interrupts.carry_out(control.clone(), async {
            control.interrupted().await;
            assert!(begun.elapsed() < Duration::from_millis(10) && !control.is_abandoned());
            control.abandoned().await;
            begun.elapsed()
        });
        let took = ended.await.unwrap();
        assert!(MOMENT <= took && took < Duration::from_secs(2), "{took:?}");

        let telling = async {
            tell.send_replace(2);
        };
        let stubborn = interrupts.carry_out(Control::new(), std::future::pending::<()>());
        assert_eq!(tokio::join!(stubborn, telling).0, None);
    }

    #[tokio::test]
    async fn a_batch_that_is_being_handed_in_is_not_dropped_before() {
        let (_tell, heard) = watch::channel(1);
        let (control, batches) = (Control::new(), Batches::default());
        control.mind(batches.clone());
        let handing_in = batches.hand_in();
        let run = async {
            let early = tokio::time::timeout(2 * MOMENT, control.abandoned());
            assert!(early.await.is_err(), "it is paid for and not noted yet");
            drop(handing_in);
            control.abandoned().await;
        };
        let interrupts = Interrupts { heard };
        assert_eq!(interrupts.carry_out(control.clone(), run).await, Some(()));
    }

    #[tokio::test]
    async fn everybody_who_waits_hears_it() {
        let (tell, heard) = watch::channel(0);
        let interrupts = Interrupts { heard };
        let other = interrupts.clone();
        assert!(!interrupts.is_asked());
        let waiting = async { tokio::join!(interrupts.asked(), other.asked()) };
        let telling = async {
            tell.send_replace(1);
        };
        tokio::join!(waiting, telling);
        assert!(other.is_asked());
        let early = tokio::time::timeout(Duration::from_millis(1), other.insisted());
        assert!(early.await.is_err(), "asked once, not twice");
        tell.send_replace(2);
        other.insisted().await;
    }
}
