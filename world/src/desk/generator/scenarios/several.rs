//! Two requests in one dialogue.

use crate::desk::generator::draft::{Draft, Knowledge};
use crate::desk::generator::{Progress, World};

use super::cancelling::cancel;
use super::delivery::{follow, redirect};
use super::exchanging::swap;
use super::returning::give_back;
use super::workshop::bring_in;

pub(super) fn two_requests(world: &mut World, scenario: &'static str, index: usize) -> Draft {
    let mut draft = Draft::new(world, scenario, index, index.is_multiple_of(4), false);
    draft.wants_human = index == 3;
    let knowledge = if index.is_multiple_of(2) {
        Knowledge::Number
    } else {
        Knowledge::Placed
    };
    match index % 4 {
        0 => {
            cancel(world, &mut draft, index, knowledge, Progress::Placed(3));
            give_back(world, &mut draft, index + 1, knowledge, 11);
        }
        1 => {
            redirect(world, &mut draft, index, knowledge, Progress::Placed(2));
            follow(world, &mut draft, index, knowledge);
        }
        2 => {
            swap(world, &mut draft, index, knowledge, 18);
            cancel(world, &mut draft, index + 1, knowledge, Progress::Placed(1));
        }
        _ => {
            give_back(world, &mut draft, index, knowledge, 24);
            bring_in(world, &mut draft, index);
        }
    }
    draft
}
