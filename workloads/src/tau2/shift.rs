//! A search on tasks unlike the held-out ones: the paper's task-cluster shift.

use super::settings::Tau2Settings;
use crate::embeddings::Embeddings;
use crate::k_means::{TooFew, k_means};
use crate::settings::BuildError;
use crate::vectors::{centroid, squared_distance, tf_idf};

/// Clusters where the settings do not say. A third of the tasks is still enough to search on, and the
/// texts of all telecom tasks are three.
const CLUSTERS: usize = 3;

/// Tasks that are alike.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Their ids, in the order they were given.
    pub(super) tasks: Vec<String>,
    /// Euclidean, of their centroid from that of the held-out tasks.
    pub(super) distance: f64,
}

/// Clusters of the tasks in `pool`, none of which is held out, ordered by their first tasks. Each has at
/// least half an even share of the tasks, and two: on fewer there is nothing to search. Without
/// `embeddings`, texts are alike that share words.
///
/// # Errors
/// When there are too few tasks or different texts, or a text or its vector is missing.
pub(super) fn clusters(
    settings: &Tau2Settings,
    pool: &[String],
    held_out: &[String],
    embeddings: Option<&Embeddings>,
    text: impl Fn(&str) -> Result<String, BuildError>,
) -> Result<Vec<Cluster>, BuildError> {
    let count = count(settings, pool.len())?;
    let ids = pool.iter().chain(held_out);
    let texts: Vec<String> = ids.map(|id| text(id)).collect::<Result<_, _>>()?;
    let vectors = match embeddings {
        Some(embeddings) => embeddings
            .of(&texts)
            .map_err(|problem| BuildError::setting("workload.embeddings", problem))?,
        None => tf_idf(&texts),
    };
    let (vectors, rest) = vectors.split_at(pool.len());
    // The share of 4 tasks or more leaves some to hold out.
    let held_out = centroid(rest);
    let least = pool.len().div_ceil(2 * count).max(2);
    let found = k_means(vectors, count, least, settings.seed).map_err(|TooFew { different }| {
        let what = if embeddings.is_some() { "vectors" } else { "texts" };
        wrong(format!(
            "{count} clusters are asked for, but the tasks that are not held out have {different} different {what}"
        ))
    })?;
    let clusters = found.into_iter().map(|members| Cluster {
        distance: squared_distance(&centroid(members.iter().map(|task| &vectors[*task])), &held_out).sqrt(),
        tasks: members.into_iter().map(|task| pool[task].clone()).collect(),
    });
    Ok(clusters.collect())
}

/// The tasks of the cluster farthest from the held-out ones, the first of equals. It is farther from them
/// than all clusters together are, whose centroid lies between theirs.
pub(super) fn farthest(clusters: Vec<Cluster>) -> Vec<String> {
    let backwards = clusters.into_iter().rev();
    let farthest = backwards.max_by(|a, b| a.distance.total_cmp(&b.distance));
    farthest.expect("there are two clusters or more").tasks
}

/// How many clusters are made of so many tasks.
pub(super) fn count(settings: &Tau2Settings, tasks: usize) -> Result<usize, BuildError> {
    let count = settings.clusters.unwrap_or(CLUSTERS);
    let most = tasks / 2;
    if most < 2 {
        return Err(BuildError::setting(
            "workload.split",
            format!("clusters need 4 tasks that are not held out, and there are {tasks}"),
        ));
    }
    if !(2..=most).contains(&count) {
        return Err(wrong(format!(
            "must be 2 to {most}, half of the {tasks} tasks that are not held out, not {count}"
        )));
    }
    Ok(count)
}

fn wrong(problem: String) -> BuildError {
    BuildError::setting("workload.clusters", problem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(more: &Value) -> Tau2Settings {
        let mut all = json!({ "domain": "airline", "data": "tau2", "split": "cluster-shift" });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    /// What a task is about by the first part of its id, with words of its own.
    fn text(id: &str) -> String {
        let (topic, number) = id.split_once('-').unwrap();
        let wish = match topic {
            "cancel" => "cancel my flight and get the money back as a refund",
            "refund" => "get the money back for my flight as a refund to my card",
            "bags" => "add two checked bags and a suitcase",
            "seat" => "upgrade the cabin to business class with a window seat",
            _ => panic!("{id}"),
        };
        format!("You want to {wish}. You are number{number}.")
    }

    fn tasks(topics: &[(&str, usize)]) -> Vec<String> {
        let of = |(topic, count): &(&str, usize)| -> Vec<String> {
            (0..*count).map(|number| format!("{topic}-{number}")).collect()
        };
        topics.iter().flat_map(of).collect()
    }

    fn found(more: &Value, pool: &[(&str, usize)], held_out: &[(&str, usize)]) -> Vec<Cluster> {
        let (pool, held_out) = (tasks(pool), tasks(held_out));
        clusters(&settings(more), &pool, &held_out, None, |id| Ok(text(id))).unwrap()
    }

    #[test]
    fn the_topic_that_is_least_like_the_held_out_tasks_is_searched_on() {
        let pool = [("cancel", 6), ("bags", 5), ("seat", 7)];
        for (held_out, far) in [
            ([("refund", 4), ("bags", 3)], "seat"),
            ([("refund", 4), ("seat", 3)], "bags"),
            ([("seat", 4), ("bags", 4)], "cancel"),
        ] {
            let count = pool.iter().find(|(topic, _)| *topic == far).unwrap().1;
            let searched = farthest(found(&json!({}), &pool, &held_out));
            assert_eq!(searched, tasks(&[(far, count)]));
        }
    }

    #[test]
    fn vectors_of_a_model_decide_where_they_are_given() {
        let (pool, held_out) = (
            tasks(&[("cancel", 6), ("bags", 5), ("seat", 7)]),
            tasks(&[("refund", 4)]),
        );
        let mut embeddings = Embeddings::default();
        for id in pool.iter().chain(&held_out) {
            // By words seats are farthest from refunds; to this model bags are.
            let vector = match id.split_once('-').unwrap().0 {
                "bags" => vec![0.0, 0.0, 7.0],
                "seat" => vec![3.0, 1.0, 0.0],
                _ => vec![5.0, 0.0, 0.0],
            };
            embeddings.insert(&text(id), "acme/embed-1", vector).unwrap();
        }
        let found = |settings: Value, embeddings| {
            let text = |id: &str| Ok(text(id));
            super::clusters(&self::settings(&settings), &pool, &held_out, embeddings, text)
        };
        let two = json!({ "clusters": 2 });
        let searched = farthest(found(two.clone(), Some(&embeddings)).unwrap());
        assert_eq!(searched, tasks(&[("bags", 5)]));
        let error = found(two, Some(&Embeddings::default())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "workload.embeddings: the file lacks vectors of 22 of the 22 texts; `capo embed STUDY` adds them"
        );
    }

    #[test]
    fn it_is_the_same_every_time_and_clear_topics_leave_the_seed_nothing_to_say() {
        let pool = [("cancel", 6), ("bags", 5), ("seat", 7)];
        let of = |seed: u64| farthest(found(&json!({ "seed": seed }), &pool, &[("refund", 4)]));
        for seed in 0..5 {
            assert_eq!(of(seed), of(0));
        }
    }

    #[test]
    fn a_task_left_out_is_missed_in_its_own_cluster_only() {
        let of = |bags| -> Vec<Vec<String>> {
            let pool = [("cancel", 6), ("seat", 7), ("bags", bags)];
            let clusters = found(&json!({}), &pool, &[("refund", 4)]);
            clusters.into_iter().map(|cluster| cluster.tasks).collect()
        };
        let (whole, less) = (of(5), of(4));
        assert_eq!(whole[..2], less[..2]);
        assert_eq!(whole[2][..4], less[2]);
    }

    #[test]
    fn a_topic_of_few_tasks_is_filled_up_to_half_an_even_share() {
        let pool = [("cancel", 11), ("bags", 11), ("seat", 2)];
        let clusters = found(&json!({}), &pool, &[("refund", 4)]);
        let sizes: Vec<usize> = clusters.iter().map(|cluster| cluster.tasks.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 24);
        assert!(sizes.iter().all(|size| *size >= 4), "{sizes:?}");
    }

    #[test]
    fn of_clusters_equally_far_the_first_is_taken() {
        let cluster = |topic, distance| Cluster {
            tasks: tasks(&[(topic, 4)]),
            distance,
        };
        let clusters = vec![cluster("bags", 0.3), cluster("seat", 0.4), cluster("cancel", 0.4)];
        assert_eq!(farthest(clusters), tasks(&[("seat", 4)]));
    }

    #[test]
    fn a_missing_text_is_said() {
        let missing = |_: &str| Err(BuildError::setting("workload.data", "no such task"));
        let pool = tasks(&[("bags", 9)]);
        let error = clusters(&settings(&json!({})), &pool, &pool, None, missing).unwrap_err();
        assert_eq!(error.to_string(), "workload.data: no such task");
    }
}
