//! The task-cluster shift of the benchmark's own tasks.

use capo_core::workload::{Split, Workload};
use serde_json::json;

use super::super::airline::Airline;
use super::super::folder::Domain;
use super::super::retail::Retail;
use super::super::settings::Tau2Settings;
use super::super::shift;
use super::super::telecom::Telecom;
use super::super::workload::Tau2;
use super::tasks;
use crate::shared::SharedFiles;
use crate::vectors::{centroid, squared_distance, tf_idf};

fn settings<W: Domain>(split: &str, seed: u64) -> Tau2Settings {
    let settings = json!({ "domain": W::NAME, "data": "tau2/data", "split": split, "seed": seed });
    serde_json::from_value(settings).unwrap()
}

fn splits<W: Domain>(split: &str, seed: u64) -> (Vec<String>, Vec<String>) {
    let workload = Tau2::<W>::new(&settings::<W>(split, seed), &SharedFiles).unwrap();
    let of = |split| workload.examples(split).to_vec();
    (of(Split::Optimize), of(Split::Evaluate))
}

fn shifted<W: Domain>(seed: u64) {
    let Some(tasks) = tasks::<W>() else {
        return;
    };
    let (pool, held_out) = splits::<W>("drawn", seed);
    let (searched, same) = splits::<W>("cluster-shift", seed);
    assert_eq!(same, held_out);

    let wish = |id: &str| Ok(tasks[id].user_scenario.wish());
    let clusters = shift::clusters(
        &settings::<W>("cluster-shift", seed),
        &pool,
        &held_out,
        None,
        wish,
    )
    .unwrap();
    let texts = pool.iter().chain(&held_out).map(|id| wish(id));
    let vectors = tf_idf(&texts.collect::<Result<Vec<_>, _>>().unwrap());
    let (of_pool, of_held_out) = vectors.split_at(pool.len());
    let all = squared_distance(&centroid(of_pool), &centroid(of_held_out)).sqrt();
    let written: Vec<String> = clusters
        .iter()
        .map(|cluster| {
            let chosen = if cluster.tasks == searched { ", chosen" } else { "" };
            format!("{} tasks at {:.3}{chosen}", cluster.tasks.len(), cluster.distance)
        })
        .collect();
    println!(
        "{}, seed {seed}: {} held out; all {} others at {all:.3}; {}",
        W::NAME,
        held_out.len(),
        pool.len(),
        written.join("; ")
    );

    assert_eq!(clusters.len(), 3);
    assert_eq!(
        clusters.iter().map(|cluster| cluster.tasks.len()).sum::<usize>(),
        pool.len()
    );
    let chosen = clusters.iter().find(|cluster| cluster.tasks == searched).unwrap();
    assert!(chosen.distance > all);
    assert!(6 * searched.len() >= pool.len());
}

#[test]
fn the_cluster_searched_on_is_farther_from_the_held_out_tasks_than_all_others_are() {
    for seed in 0..5 {
        shifted::<Airline>(seed);
        shifted::<Retail>(seed);
        shifted::<Telecom>(seed);
    }
}
