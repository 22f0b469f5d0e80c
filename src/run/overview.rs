//! Everything the live page draws of a run, made once for each change and shared.

use std::rc::Rc;
use std::sync::Arc;

use capo_core::journal::StudyEvent;
use capo_core::methods;
use capo_core::reading::metrics::Aims;
use capo_core::reading::standing::Standings;
use capo_core::run_state::RunState;

use super::closed::Closed;
use super::map::Map;
use super::now::Now;
use super::pool::Pool;
use super::readings;
use super::sentence::Sentence;
use super::series::Series;

/// A run as charts and tables see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Round by round.
    pub series: Series,
    /// Objective against the worst residual.
    pub map: Map,
    /// What the map says.
    pub map_reading: Sentence,
    /// The best prompt so far, or the closest.
    pub best: Sentence,
    /// Every prompt, the pool first.
    pub pool: Pool,
    /// What the run is doing.
    pub now: Now,
}

/// The overview of a run that goes on. What closed rounds and whole measurements say is kept, so
/// that a change costs what is new.
#[derive(Debug, Default)]
pub struct Overviews {
    study: Option<Rc<StudyEvent>>,
    standings: Standings,
    closed: Closed,
    /// The latest, and how many lines of the journal it rests on.
    latest: Option<(u64, Arc<Overview>)>,
}

impl Overviews {
    /// The overview of a run after so many lines of its journal; `None` before its study is known.
    pub fn after(&mut self, lines: u64, state: &RunState) -> Option<Arc<Overview>> {
        let study = state.study()?;
        if !self.study.as_ref().is_some_and(|known| Rc::ptr_eq(known, study)) {
            // The journal was read anew: nothing of before counts.
            *self = Self {
                study: Some(Rc::clone(study)),
                ..Self::default()
            };
        }
        if let Some((known, latest)) = &self.latest
            && *known == lines
        {
            return Some(Arc::clone(latest));
        }
        let latest = Arc::new(self.make(state)?);
        self.latest = Some((lines, Arc::clone(&latest)));
        Some(latest)
    }

    fn make(&mut self, state: &RunState) -> Option<Overview> {
        let aims = Aims::of(state)?;
        let standings = self
            .standings
            .follow(state, &aims, &methods::multipliers_now(state));
        let map = Map::of(state, &standings);
        Some(Overview {
            series: Series::following(state, &aims, &standings, &mut self.closed),
            map_reading: readings::map(state, &map),
            best: readings::best(state, &map),
            map,
            pool: Pool::of(state, &aims, &standings),
            now: Now::new(state),
        })
    }
}
