//! Texts as vectors of one length.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use unicode_segmentation::UnicodeSegmentation;

/// How many features words are hashed to.
const BUCKETS: u64 = 4096;

/// The hashed TF-IDF vectors of the texts, of length 1.
///
/// Words (UAX #29, lower case) are hashed to [`BUCKETS`] features. Of a feature that `count` words of a
/// text have and `shared` of `n` texts, the weight is (1 + ln count) (1 + ln((1 + n) ÷ (1 + shared))).
/// What only one text has says nothing of what texts have in common and is left out; a text of such words
/// alone is the zero vector.
pub(crate) fn tf_idf(texts: &[String]) -> Vec<Vec<f64>> {
    let counted: Vec<BTreeMap<u64, u32>> = texts.iter().map(|text| counts(text)).collect();
    let mut shared: BTreeMap<u64, u32> = BTreeMap::new();
    for feature in counted.iter().flat_map(BTreeMap::keys) {
        *shared.entry(*feature).or_default() += 1;
    }
    shared.retain(|_, texts| *texts > 1);
    let rarity = |texts: u32| 1.0 + libm::log((1 + counted.len()) as f64 / f64::from(1 + texts));
    let vectors = counted.iter().map(|counts| {
        let weights = shared.iter().map(|(feature, texts)| {
            let count = counts.get(feature).copied().map(f64::from);
            count.map_or(0.0, |count| (1.0 + libm::log(count)) * rarity(*texts))
        });
        normalized(weights.collect())
    });
    vectors.collect()
}

/// How many words of a text have each feature.
fn counts(text: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for word in text.to_lowercase().unicode_words() {
        let hash = <[u8; 32]>::from(Sha256::digest(word));
        let (first, _) = hash.split_first_chunk().expect("32 bytes begin with 8");
        *counts.entry(u64::from_le_bytes(*first) % BUCKETS).or_default() += 1;
    }
    counts
}

/// The vector at length 1; zero stays zero.
pub(crate) fn normalized(mut vector: Vec<f64>) -> Vec<f64> {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if length > 0.0 {
        for value in &mut vector {
            *value /= length;
        }
    }
    vector
}

/// The mean of vectors, of which there must be one.
pub(crate) fn centroid<'a>(vectors: impl IntoIterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    let mut vectors = vectors.into_iter();
    let mut mean = vectors.next().expect("a centroid is of something").clone();
    let mut count = 1.0;
    for vector in vectors {
        count += 1.0;
        for (sum, value) in mean.iter_mut().zip(vector) {
            *sum += value;
        }
    }
    for sum in &mut mean {
        *sum /= count;
    }
    mean
}

/// The square of the Euclidean distance.
pub(crate) fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    let differences = one.iter().zip(other).map(|(one, other)| one - other);
    differences.map(|difference| difference * difference).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(texts: [&str; N]) -> Vec<Vec<f64>> {
        tf_idf(&texts.map(str::to_owned))
    }

    #[test]
    fn the_same_words_make_the_same_vector_of_length_1_in_any_order_and_case() {
        let vectors = of(["Cancel my flight", "my flight: cancel!", "change my flight"]);
        assert_eq!(vectors[0], vectors[1]);
        for vector in &vectors {
            assert!((squared_distance(vector, &vec![0.0; vector.len()]) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn rare_words_bring_texts_closer_than_common_ones() {
        let vectors = of(["the seat", "the seat", "the bag", "the bag", "the bag"]);
        let pair = of(["the seat", "seat and bag", "the bag", "the bag", "the bag"]);
        assert!(squared_distance(&vectors[0], &vectors[2]) > squared_distance(&pair[1], &pair[0]));
    }

    #[test]
    fn a_word_of_one_text_alone_does_not_count() {
        let vectors = of(["cancel flight mia_li_3668", "cancel flight", "unheard"]);
        assert_eq!(vectors[0], vectors[1]);
        assert_eq!(vectors[2], vec![0.0; vectors[0].len()]);
    }

    #[test]
    fn a_centroid_is_the_mean() {
        assert_eq!(centroid(&[vec![0.0, 2.0], vec![1.0, 4.0]]), [0.5, 3.0]);
    }
}
