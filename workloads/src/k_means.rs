//! k-means clustering: points that lie together.

use capo_core::random::Streams;
use capo_core::random::without_replacement;

use crate::vectors::{centroid, squared_distance};

/// How often k-means starts; the best result is kept.
const STARTS: u64 = 16;

/// Moves of the centres after a start; a few do until no point changes its cluster.
const MOVES: usize = 100;

/// Fewer different points than clusters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooFew {
    /// Different points.
    pub(crate) different: usize,
}

/// The points in `count` clusters of at least `least` by k-means: each the positions of its points,
/// ascending, ordered by their first.
///
/// Lloyd's algorithm after starts of k-means++ (Arthur and Vassilvitskii 2007), which the seed draws; the
/// result with the least sum of squared distances from centroids is kept. Without a least size, a point
/// far from all others often is a cluster by itself (Bradley, Bennett and Demiriz 2000). Sums run in the
/// order of the points, so that a browser finds the same.
///
/// # Errors
/// When fewer than `count` points differ.
///
/// # Panics
/// When there are fewer than `count` times `least` points.
pub(crate) fn k_means(
    points: &[Vec<f64>],
    count: usize,
    least: usize,
    seed: u64,
) -> Result<Vec<Vec<usize>>, TooFew> {
    let mut best = Assigned {
        sum: f64::INFINITY,
        clusters: Vec::new(),
    };
    for number in 0..STARTS {
        let found = settled(points, start(points, count, seed, number)?, least);
        if found.sum < best.sum {
            best = found;
        }
    }
    best.clusters.sort();
    Ok(best.clusters)
}

/// Points, each with a centre.
struct Assigned {
    /// Of the squared distances.
    sum: f64,
    /// Positions of the points of each centre, ascending.
    clusters: Vec<Vec<usize>>,
}

/// Centres at different points: the first drawn uniformly, each further one by its squared distance from
/// the nearest before it.
fn start(points: &[Vec<f64>], count: usize, seed: u64, number: u64) -> Result<Vec<Vec<f64>>, TooFew> {
    let mut stream = Streams::new(seed).stream("clusters", number, 0);
    let mut centres: Vec<Vec<f64>> = Vec::new();
    let mut scores = vec![0.0; points.len()];
    let mut distances = vec![f64::INFINITY; points.len()];
    while centres.len() < count {
        if scores.iter().all(|score| *score == f64::NEG_INFINITY) {
            return Err(TooFew {
                different: centres.len(),
            });
        }
        let drawn = without_replacement(&scores, 1.0, 1, &mut stream)[0];
        let centre = points[drawn].clone();
        for (distance, point) in distances.iter_mut().zip(points) {
            *distance = distance.min(squared_distance(point, &centre));
        }
        scores = distances.iter().map(|distance| libm::log(*distance)).collect();
        centres.push(centre);
    }
    Ok(centres)
}

/// Moves each centre to the centroid of its points, until that changes none of them.
fn settled(points: &[Vec<f64>], mut centres: Vec<Vec<f64>>, least: usize) -> Assigned {
    let mut assigned = assign(points, &centres, least);
    for _ in 0..MOVES {
        for (centre, members) in centres.iter_mut().zip(&assigned.clusters) {
            *centre = centroid(members.iter().map(|point| &points[*point]));
        }
        let moved = assign(points, &centres, least);
        let is_settled = moved.clusters == assigned.clusters;
        assigned = moved;
        if is_settled {
            break;
        }
    }
    assigned
}

/// Each point goes to its nearest centre. A centre with fewer than `least` then takes, one by one, those
/// that lose least by it, of centres that can spare one. Of equals, the first.
fn assign(points: &[Vec<f64>], centres: &[Vec<f64>], least: usize) -> Assigned {
    let distances: Vec<Vec<f64>> = points
        .iter()
        .map(|point| {
            centres
                .iter()
                .map(|centre| squared_distance(point, centre))
                .collect()
        })
        .collect();
    let mut sizes = vec![0; centres.len()];
    let mut chosen: Vec<usize> = Vec::new();
    for of_point in &distances {
        let nearest = (0..centres.len()).min_by(|a, b| of_point[*a].total_cmp(&of_point[*b]));
        let nearest = nearest.expect("there is a centre");
        sizes[nearest] += 1;
        chosen.push(nearest);
    }
    for centre in 0..centres.len() {
        while sizes[centre] < least {
            let loss = |point: &usize| distances[*point][centre] - distances[*point][chosen[*point]];
            let spare =
                (0..points.len()).filter(|point| chosen[*point] != centre && sizes[chosen[*point]] > least);
            let taken = spare.min_by(|a, b| loss(a).total_cmp(&loss(b)));
            let taken = taken.expect("there are enough points for all centres");
            sizes[chosen[taken]] -= 1;
            sizes[centre] += 1;
            chosen[taken] = centre;
        }
    }
    let mut clusters = vec![Vec::new(); centres.len()];
    for (point, centre) in chosen.iter().enumerate() {
        clusters[*centre].push(point);
    }
    let sum = distances
        .iter()
        .zip(&chosen)
        .map(|(of_point, centre)| of_point[*centre])
        .sum();
    Assigned { sum, clusters }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three heaps of points, far from each other.
    fn heaps() -> Vec<Vec<f64>> {
        let at = |x: f64, y: f64| vec![x, y];
        vec![
            at(0.0, 0.0),
            at(9.0, 0.0),
            at(0.0, 9.0),
            at(0.1, 0.2),
            at(9.1, 0.0),
            at(0.2, 0.0),
        ]
    }

    #[test]
    fn heaps_are_found_whatever_the_seed() {
        for seed in 0..20 {
            let clusters = k_means(&heaps(), 3, 1, seed).unwrap();
            assert_eq!(clusters, [vec![0, 3, 5], vec![1, 4], vec![2]]);
        }
    }

    #[test]
    fn a_seed_starts_the_same_and_another_elsewhere() {
        let starts = |seed| -> Vec<_> {
            (0..STARTS)
                .map(|n| start(&heaps(), 2, seed, n).unwrap())
                .collect()
        };
        assert_eq!(starts(0), starts(0));
        assert_ne!(starts(0), starts(1));
    }

    #[test]
    fn starts_prefer_far_points() {
        let mut line: Vec<Vec<f64>> = (0..50).map(|step| vec![f64::from(step) * 1e-3]).collect();
        line.push(vec![100.0]);
        let found = (0..100).filter(|seed| start(&line, 2, *seed, 0).unwrap().contains(&vec![100.0]));
        assert_eq!(found.count(), 100);
    }

    #[test]
    fn a_point_far_from_all_others_is_no_cluster_where_two_are_needed() {
        let mut points = heaps();
        points.push(vec![0.0, 90.0]);
        assert_eq!(k_means(&points, 3, 1, 0).unwrap().last(), Some(&vec![6]));
        let clusters = k_means(&points, 3, 2, 0).unwrap();
        assert_eq!(clusters, [vec![0, 3, 5], vec![1, 4], vec![2, 6]]);
    }

    #[test]
    fn equal_points_cannot_be_told_apart() {
        let points = [vec![1.0], vec![2.0], vec![1.0], vec![2.0]];
        assert_eq!(k_means(&points, 2, 2, 0).unwrap(), [vec![0, 2], vec![1, 3]]);
        assert_eq!(k_means(&points, 3, 1, 0), Err(TooFew { different: 2 }));
    }
}
