//! Rotary position embeddings (RoPE) as `config.json` states them.

use serde_json::{Map, Value};

use super::table::{LARGEST, Table};
use super::{Architecture, QueryScaling, RopeConfig, Yarn};

/// Base of the frequencies where none is stated.
const THETA: f64 = 10_000.0;

/// `rope_parameters` of transformers 5, or `rope_scaling` and `rope_theta` of transformers 4.
pub(super) fn rope(
    table: &Table,
    architecture: Architecture,
    context: usize,
) -> Result<(RopeConfig, Option<QueryScaling>), String> {
    let stated = match table.get("rope_parameters")? {
        Some(parameters) => Some(("rope_parameters.", parameters)),
        None => table
            .get("rope_scaling")?
            .map(|scaling| ("rope_scaling.", scaling)),
    };
    let is_bare = stated.is_none() && table.stated("rope_theta").is_none();
    let (place, entries): (_, Map<String, Value>) = match stated {
        Some(stated) => stated,
        None if is_bare && architecture == Architecture::Ministral3 => {
            ("rope_parameters.", ministral3_rope())
        }
        None => ("rope_parameters.", Map::new()),
    };
    let rope = Table::new(place, &entries);
    if let Some(name) = entries
        .iter()
        .find(|(_, value)| value.is_object())
        .map(|(name, _)| name)
    {
        return Err(format!(
            "`{}` is a table: angles that differ by layer are not supported",
            rope.path(name)
        ));
    }
    rope.refuse_unless("truncate", &true.into())?;
    for table in [table, &rope] {
        if table
            .get("partial_rotary_factor")?
            .is_some_and(|share: f64| share != 1.0)
        {
            return Err(format!(
                "`{}` must be 1: heads that are turned in part are not supported",
                table.path("partial_rotary_factor")
            ));
        }
    }
    let theta = table.number("rope_theta", THETA, 1.0)?;
    let theta = rope.number("rope_theta", theta, 1.0)?;
    let original_context = rope.size("original_max_position_embeddings", context, LARGEST)?;
    let yarn = yarn(&rope, original_context)?;
    let beta: Option<f64> = rope.get("llama_4_scaling_beta")?;
    if beta.is_some_and(|beta| !beta.is_finite()) {
        return Err(format!("`{}` must be finite", rope.path("llama_4_scaling_beta")));
    }
    let query_scaling = beta.map(|beta| QueryScaling {
        beta,
        original_context,
    });
    Ok((RopeConfig { theta, yarn }, query_scaling))
}

/// `rope_parameters` of `Ministral3Config`.
fn ministral3_rope() -> Map<String, Value> {
    [
        ("rope_type", Value::from("yarn")),
        ("rope_theta", 1e6.into()),
        ("factor", 16.0.into()),
        ("original_max_position_embeddings", 16_384.into()),
        ("beta_fast", 32.0.into()),
        ("beta_slow", 1.0.into()),
        ("mscale", 1.0.into()),
        ("mscale_all_dim", 1.0.into()),
        ("llama_4_scaling_beta", 0.1.into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

fn yarn(rope: &Table, original_context: usize) -> Result<Option<Yarn>, String> {
    let kind: Option<String> = match rope.get("rope_type")? {
        Some(kind) => Some(kind),
        None => rope.get("type")?,
    };
    match kind.as_deref().unwrap_or("default") {
        "default" => return Ok(None),
        "yarn" => {}
        other => {
            return Err(format!(
                "rope type `{other}` is not supported: it must be default or yarn"
            ));
        }
    }
    let factor = rope.number("factor", f64::NAN, 0.0)?;
    if factor < 1.0 {
        return Err(format!(
            "`{}` is {factor}: it must be 1 or more",
            rope.path("factor")
        ));
    }
    Ok(Some(Yarn {
        factor,
        original_context,
        beta_fast: rope.number("beta_fast", 32.0, 0.0)?,
        beta_slow: rope.number("beta_slow", 1.0, 0.0)?,
        attention_factor: rope.number("attention_factor", attention_factor(rope, factor)?, 0.0)?,
    }))
}

/// The factor on cosine and sine where it is not stated.
fn attention_factor(rope: &Table, factor: f64) -> Result<f64, String> {
    let scale = |k: f64| 0.1 * k * factor.ln() + 1.0;
    Ok(
        match (rope.get::<f64>("mscale")?, rope.get::<f64>("mscale_all_dim")?) {
            (Some(one), Some(all)) if one != 0.0 && all != 0.0 => scale(one) / scale(all),
            _ => scale(1.0),
        },
    )
}
