//! The model that a run waits for, as those hear of it who watch.

use std::cell::RefCell;
use std::rc::Rc;

use capo_core::notice::{Notice, Observer, Wait};

/// The model that a run waits for, and until when, in milliseconds since 1970; none while it waits for nobody.
pub type Waits = Option<(Wait, i64)>;

/// Has `change` told of the last wait of a run, and once its model answers, of none. `now` is in milliseconds since 1970.
pub fn waits(now: impl Fn() -> i64 + 'static, change: impl Fn(Waits) + 'static) -> Observer {
    let known = RefCell::new(None::<Wait>);
    Rc::new(move |notice| match notice {
        Notice::Waiting(wait) => {
            known.replace(Some(wait.clone()));
            change(Some((wait.clone(), now() + (1_000.0 * wait.seconds) as i64)));
        }
        Notice::Answered { model, host } => {
            let answered = |wait: &mut Wait| wait.model == *model && wait.host == *host;
            if known.borrow_mut().take_if(answered).is_some() {
                change(None);
            }
        }
        // A shared key answers single calls alone.
        Notice::Batch(_) => {}
    })
}

/// How many seconds after its end a wait is still told: the call tries again and has no answer yet.
const AFTERWARDS: f64 = 5.0;

/// What is left of a wait at a moment; none once it is long over, for the call may have been given up.
pub fn left((wait, until): &(Wait, i64), now: i64) -> Option<Wait> {
    let seconds = (until - now) as f64 / 1_000.0;
    (seconds > -AFTERWARDS).then(|| Wait {
        seconds: seconds.max(0.0),
        ..wait.clone()
    })
}
