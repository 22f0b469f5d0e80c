//! Learning on several devices at a time: each has a copy of the policy and learns from a share of every step, and
//! the sum of the shares' gradients is the step's.
//!
//! Gradients are summed by burn's collective operations. Its server is one for the backend and the process, and peers
//! wait for each other without end: so nobody takes part before all shares are computed. What goes from device to
//! device goes by way of main memory, as direct copies need libraries that not all machines have, such as NCCL.

use std::iter::once;
use std::sync::{Arc, Mutex, PoisonError};

use burn_collective::{
    CollectiveConfig, CollectiveError, PeerId, ReduceOperation, reduce, register, reset_collective,
};
use burn_tensor::{Tensor, TensorPrimitive};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::backend::PolicyBackend;
use crate::error::RequestError;
use crate::optimizer::Gradient;
use crate::policy::Policy;

/// The peer that gets the sum: the device where the optimizer makes its steps.
const ROOT: PeerId = PeerId(0);

/// Copies of a policy on devices that learn beside the policy's own.
#[derive(Debug, Clone)]
pub struct Replicas<B: PolicyBackend> {
    copies: Vec<Policy<B>>,
    /// One for each device, its own the first. They stay, as GPU backends keep memory for every thread that computes.
    threads: Option<Arc<ThreadPool>>,
}

impl<B: PolicyBackend> Default for Replicas<B> {
    /// None: the policy's own device learns alone.
    fn default() -> Self {
        Self {
            copies: Vec::new(),
            threads: None,
        }
    }
}

impl<B: PolicyBackend> Replicas<B> {
    /// Copies on further devices, one each, of the policy that is to learn: what does not learn is theirs for good,
    /// what learns is copied at every step.
    ///
    /// # Errors
    ///
    /// [`RequestError::Collective`] when the system gives no threads.
    pub fn new(copies: Vec<Policy<B>>) -> Result<Self, RequestError> {
        if copies.is_empty() {
            return Ok(Self::default());
        }
        let threads = ThreadPoolBuilder::new()
            .num_threads(1 + copies.len())
            .thread_name(|place| format!("device {place}"))
            .build()
            .map_err(|why| RequestError::Collective(why.to_string()))?;
        Ok(Self {
            copies,
            threads: Some(Arc::new(threads)),
        })
    }

    /// Devices that learn, the policy's own included.
    pub fn devices(&self) -> usize {
        1 + self.copies.len()
    }

    /// The most of its own memory that one of the devices holds for learning, in bytes; see
    /// [`PolicyBackend::device_memory`].
    pub(crate) fn device_memory(&self, policy: &Policy<B>) -> Option<u64> {
        let devices: Vec<_> = once(policy)
            .chain(&self.copies)
            .map(|policy| policy.decoder().device())
            .collect();
        // Every thread has memory of its own on each device that it sends something to.
        let held = || devices.iter().map(B::device_memory).collect::<Vec<_>>();
        let mut of_threads = vec![held()];
        if let Some(threads) = &self.threads {
            of_threads.extend(threads.broadcast(|_| held()));
        }
        let of_device = |place: usize| of_threads.iter().map(|held| held[place]).sum::<Option<u64>>();
        (0..devices.len()).filter_map(of_device).max()
    }

    /// A policy as each device has it, its own first.
    pub(crate) fn of(&self, policy: &Policy<B>) -> Vec<Policy<B>> {
        let copies = self.copies.iter().map(|copy| copy.following(policy));
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
        let (Some(threads), [_, _, ..]) = (&self.threads, shares) else {
            let share = shares.first().ok_or(RequestError::EmptyBatch)?;
            let (told, gradient) = learn(0, policy, share)?;
            return Ok((vec![told], gradient));
        };
        let root = policy.decoder().device();
        let policies = self.of(policy);
        let learned = threads.broadcast(|thread| {
            let place = thread.index();
            let share = shares.get(place)?;
            let learned = learn(place, &policies[place], share);
            Some(learned.map(|(told, gradient)| (told, gradient.carried(&root))))
        });
        let learned = learned.into_iter().flatten();
        let learned = learned.collect::<Result<Vec<_>, RequestError>>()?;
        let (told, gradients): (Vec<T>, Vec<Gradient<B>>) = learned.into_iter().unzip();
        Ok((told, summed(threads, gradients)?))
    }
}

/// The sum of gradients that are on one device.
fn summed<B: PolicyBackend>(
    threads: &ThreadPool,
    gradients: Vec<Gradient<B>>,
) -> Result<Gradient<B>, RequestError> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let config = CollectiveConfig::default().with_num_devices(gradients.len());
    let peers: Vec<_> = gradients
        .into_iter()
        .map(|gradient| Mutex::new(Some(gradient)))
        .collect();
    let sums = threads.broadcast(|thread| {
        let place = thread.index();
        let gradient = peers
            .get(place)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(take_part(place.into(), gradient, &config))
    });
    let sums: Vec<_> = sums.into_iter().flatten().collect();
    let is_gone = |sum: &Result<_, _>| matches!(sum, Err(CollectiveError::LocalServerMissing));
    // The server is to forget its peers before the next sum, unless it is gone itself.
    if !sums.iter().any(is_gone) {
        reset_collective::<B>();
    }
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
