//! Places of which there are so many, and of which nobody holds more than a share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many places, and who holds how many of them.
#[derive(Debug, Clone)]
pub struct Places {
    most: usize,
    share: usize,
    held: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by: HashMap<String, usize>,
}

/// A place, for as long as this lives.
#[derive(Debug)]
pub struct Place {
    places: Places,
    holder: String,
}

impl Places {
    /// So many, and a share of them for each.
    pub fn new(most: usize, share: usize) -> Self {
        Self {
            most,
            share,
            held: Arc::default(),
        }
    }

    /// A place for somebody, unless all are taken or they hold their share.
    pub fn take(&self, holder: &str) -> Option<Place> {
        let mut held = self.held();
        let by_them = held.by.get(holder).copied().unwrap_or(0);
        if held.all >= self.most || by_them >= self.share {
            return None;
        }
        held.all += 1;
        held.by.insert(holder.to_owned(), by_them + 1);
        Some(Place {
            places: self.clone(),
            holder: holder.to_owned(),
        })
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.held().all
    }

    fn held(&self) -> MutexGuard<'_, Counts> {
        // Nothing panics while it has them.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held();
        held.all -= 1;
        if let Some(by_them) = held.by.get_mut(&self.holder) {
            *by_them -= 1;
            if *by_them == 0 {
                held.by.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_more_than_a_share_and_all_together_no_more_than_there_are() {
        let places = Places::new(5, 2);
        let ada: Vec<Place> = (0..2).map(|_| places.take("ada").unwrap()).collect();
        assert!(places.take("ada").is_none());
        let others = ["bea", "bea", "cy"].map(|name| places.take(name).unwrap());
        assert!(places.take("dan").is_none(), "all are taken");
        drop(ada);
        assert!(places.take("dan").is_some());
        drop(others);
        assert_eq!((places.taken(), places.held().by.len()), (0, 0));
    }
}
