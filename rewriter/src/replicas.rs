//! Learning on several devices at a time: each has a copy of the policy and learns from a share of every step, and
//! the sum of the shares' gradients is the step's.
//!
//! Gradients are summed by burn's collective operations. Its server is one for the backend and the process, and peers
//! wait for each other without end: so nobody takes part before all shares are computed.

use std::iter::once;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{ScopedJoinHandle, scope};

use burn_collective::{
    CollectiveConfig, CollectiveError, PeerId, ReduceOperation, reduce, register, reset_collective,
};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::backend::PolicyBackend;
use crate::error::RequestError;
use crate::optimizer::Gradient;
use crate::policy::Policy;

/// The peer that gets the sum: the device where the optimizer makes its steps.
const ROOT: PeerId = PeerId(0);

/// Copies of a policy on devices that learn beside the policy's own.
#[derive(Debug, Clone, Default)]
pub struct Replicas<B: PolicyBackend>(Vec<Policy<B>>);

impl<B: PolicyBackend> Replicas<B> {
    /// Copies on further devices, one each, of the policy that is to learn: what does not learn is theirs for good,
    /// what learns is copied at every step.
    pub fn new(copies: Vec<Policy<B>>) -> Self {
        Self(copies)
    }

    /// Devices that learn, the policy's own included.
    pub fn devices(&self) -> usize {
        1 + self.0.len()
    }

    /// The most of its own memory that one of the devices holds, in bytes; see [`PolicyBackend::device_memory`].
    pub(crate) fn device_memory(&self, policy: &Policy<B>) -> Option<u64> {
        once(policy)
            .chain(&self.0)
            .filter_map(|policy| B::device_memory(&policy.decoder().device()))
            .max()
    }

    /// A policy as each device has it, its own first.
    pub(crate) fn of(&self, policy: &Policy<B>) -> Vec<Policy<B>> {
        let copies = self.0.iter().map(|copy| copy.following(policy));
        once(policy.clone()).chain(copies).collect()
    }

    /// Learns from the shares of a step, one to a device; `learn` gets the place of the device, from 0, and the policy
    /// there. Returns what it says of each share, and the sum of the gradients on the policy's own device.
    ///
    /// # Errors
    ///
    /// The first that `learn` gives, no shares, or [`RequestError::Collective`].
    pub(crate) fn learn<W: Sync, T: Send>(
        &self,
        policy: &Policy<B>,
        shares: &[W],
        learn: impl Fn(usize, &Policy<B>, &W) -> Result<(T, Gradient<B>), RequestError> + Sync,
    ) -> Result<(Vec<T>, Gradient<B>), RequestError> {
        if let [share] = shares {
            let (told, gradient) = learn(0, policy, share)?;
            return Ok((vec![told], gradient));
        }
        let policies = self.of(policy);
        let learn = &learn;
        let learned: Vec<_> = scope(|scope| {
            let places = (0..).zip(policies).zip(shares);
            let threads: Vec<_> = places
                .map(|((place, policy), share)| scope.spawn(move || learn(place, &policy, share)))
                .collect();
            threads.into_iter().map(joined).collect()
        });
        let learned = learned.into_iter().collect::<Result<Vec<_>, RequestError>>()?;
        let (told, gradients): (Vec<T>, Vec<Gradient<B>>) = learned.into_iter().unzip();
        Ok((told, summed(gradients)?))
    }
}

/// What a thread came to; its panic is this one's.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The sum of gradients on different devices, on the first one's.
fn summed<B: PolicyBackend>(gradients: Vec<Gradient<B>>) -> Result<Gradient<B>, RequestError> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let config = CollectiveConfig::default().with_num_devices(gradients.len());
    let config = &config;
    let sums: Vec<_> = scope(|scope| {
        let peers = (0_usize..).zip(gradients);
        let threads: Vec<_> = peers
            .map(|(place, gradient)| scope.spawn(move || take_part(place.into(), gradient, config)))
            .collect();
        threads.into_iter().map(joined).collect()
    });
    reset_collective::<B>();
    let mut sums = sums.into_iter().collect::<Result<Vec<_>, CollectiveError>>()?;
    sums.swap_remove(0).ok_or(RequestError::EmptyBatch)
}

/// One device's part in a sum; the root gets it.
fn take_part<B: PolicyBackend>(
    peer: PeerId,
    gradient: Gradient<B>,
    config: &CollectiveConfig,
) -> Result<Option<Gradient<B>>, CollectiveError> {
    let parts = gradient.into_parts();
    let Some(device) = parts.first().map(Tensor::device) else {
        return Ok(Some(Gradient::from_parts(parts)));
    };
    register::<B>(peer, device, config.clone())?;
    let mut sums = Vec::with_capacity(parts.len());
    for part in parts {
        let part = part.into_primitive().tensor();
        let sum = reduce::<B>(peer, part, ReduceOperation::Sum, ROOT)?;
        sums.extend(sum.map(|sum| Tensor::from_primitive(TensorPrimitive::Float(sum))));
    }
    Ok((peer == ROOT).then(|| Gradient::from_parts(sums)))
}

/// Some items in at most so many shares of about the same length, their order kept; none is empty.
pub(crate) fn shares<T>(items: &[T], count: usize, length: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let length = |item: &T| length(item).max(1);
    let whole: usize = items.iter().map(length).sum();
    let mut before = 0;
    // By where the middle of an item lies.
    let place = |item: &T| {
        let middle = 2 * before + length(item);
        before += length(item);
        middle * count / (2 * whole)
    };
    let places: Vec<usize> = items.iter().map(place).collect();
    let mut shares = Vec::new();
    let mut rest = items;
    for same in places.chunk_by(|one, next| one == next) {
        let (share, later) = rest.split_at(same.len());
        shares.push(share);
        rest = later;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_hold_everything_in_its_order_and_are_about_alike(
            lengths in prop::collection::vec(0_usize..50, 1..40), count in 1_usize..9,
        ) {
            let shares = shares(&lengths, count, |length| *length);
            prop_assert_eq!(shares.concat(), lengths.clone());
            prop_assert!(shares.len() <= count && shares.iter().all(|share| !share.is_empty()));
            let of = |share: &[usize]| share.iter().map(|length| (*length).max(1)).sum::<usize>();
            let longest = lengths.iter().copied().max().unwrap().max(1);
            for share in &shares {
                prop_assert!(of(share) <= of(&lengths).div_ceil(count) + longest, "{shares:?}");
            }
        }
    }
}
