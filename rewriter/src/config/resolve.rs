//! From the entries of `config.json` to a decoder's sizes, with the defaults that transformers has.

use super::rope::rope;
use super::table::{LARGEST, Table};
use super::{Architecture, ModelConfig, Tokens};

/// What transformers takes where a configuration does not state it.
struct Defaults {
    vocabulary: usize,
    intermediate: usize,
    layers: usize,
    kv_heads: usize,
    /// `None` for the hidden width over the heads.
    head_dim: Option<usize>,
    context: usize,
    rms_norm_eps: f64,
    window: Option<usize>,
    stop_token: Option<u32>,
}

impl Architecture {
    /// `model_type` decides; the text model of a multimodal one is a Mistral where it does not say.
    fn of(table: &Table, multimodal: bool) -> Result<Self, String> {
        let found: Option<String> = table.get("model_type")?;
        let found = match &found {
            Some(name) => name,
            None if multimodal => return Ok(Self::Mistral),
            None => return Err("`model_type` is missing, so the architecture is unknown".into()),
        };
        [Self::Qwen3, Self::Mistral, Self::Ministral3]
            .into_iter()
            .find(|architecture| architecture.name() == found)
            .ok_or_else(|| {
                format!(
                    "unknown architecture `{found}`: `{}` must be qwen3, mistral or ministral3",
                    table.path("model_type")
                )
            })
    }

    /// As the classes `Qwen3Config`, `MistralConfig` and `Ministral3Config` have them; all have 32 heads
    /// and a hidden width of 4096, and none ties the output layer to the embedding.
    fn defaults(self) -> Defaults {
        match self {
            Self::Qwen3 => Defaults {
                vocabulary: 151_936,
                intermediate: 22_016,
                layers: 32,
                kv_heads: 32,
                head_dim: Some(128),
                context: 32_768,
                rms_norm_eps: 1e-6,
                window: Some(4096),
                stop_token: None,
            },
            Self::Mistral => Defaults {
                vocabulary: 32_000,
                intermediate: 14_336,
                layers: 32,
                kv_heads: 8,
                head_dim: None,
                context: 131_072,
                rms_norm_eps: 1e-6,
                window: Some(4096),
                stop_token: Some(2),
            },
            Self::Ministral3 => Defaults {
                vocabulary: 131_072,
                intermediate: 14_336,
                layers: 34,
                kv_heads: 8,
                head_dim: Some(128),
                context: 262_144,
                rms_norm_eps: 1e-5,
                window: None,
                stop_token: Some(2),
            },
        }
    }
}

/// Most layers that are believed.
const MOST_LAYERS: usize = 1 << 14;

/// What a table says of a decoder, with the defaults of its class.
///
/// # Errors
///
/// Names an entry that is unknown, outside its range, or does not fit another.
pub(super) fn resolve(table: &Table, multimodal: bool) -> Result<ModelConfig, String> {
    let architecture = Architecture::of(table, multimodal)?;
    let defaults = architecture.defaults();
    table.refuse_unless("hidden_act", &"silu".into())?;
    table.refuse_unless("attention_bias", &false.into())?;
    let hidden = table.size("hidden_size", 4096, LARGEST)?;
    let heads = table.size("num_attention_heads", 32, LARGEST)?;
    let context = table.size("max_position_embeddings", defaults.context, LARGEST)?;
    let layers = table.size("num_hidden_layers", defaults.layers, MOST_LAYERS)?;
    let (rope, query_scaling) = rope(table, architecture, context)?;
    Ok(ModelConfig {
        architecture,
        multimodal,
        vocabulary: table.size("vocab_size", defaults.vocabulary, LARGEST)?,
        hidden,
        intermediate: table.size("intermediate_size", defaults.intermediate, LARGEST)?,
        heads,
        kv_heads: kv_heads(table, heads, defaults.kv_heads)?,
        head_dim: head_dim(table, hidden, heads, defaults.head_dim)?,
        rms_norm_eps: table.number("rms_norm_eps", defaults.rms_norm_eps, 0.0)?,
        context,
        rope,
        query_scaling,
        windows: windows(table, architecture, layers)?,
        tied: table.get("tie_word_embeddings")?.unwrap_or(false),
        stop_tokens: table
            .or("eos_token_id", defaults.stop_token.map(Tokens::One))?
            .map(Vec::from)
            .unwrap_or_default(),
    })
}

/// Null stands for as many as there are query heads.
fn kv_heads(table: &Table, heads: usize, default: usize) -> Result<usize, String> {
    let default = match table.stated("num_key_value_heads") {
        None => default,
        Some(_) => heads,
    };
    let kv_heads = table.size("num_key_value_heads", default, LARGEST)?;
    if heads.is_multiple_of(kv_heads) {
        return Ok(kv_heads);
    }
    Err(format!(
        "`num_attention_heads` {heads} is no multiple of `num_key_value_heads` {kv_heads}"
    ))
}

fn head_dim(table: &Table, hidden: usize, heads: usize, default: Option<usize>) -> Result<usize, String> {
    let width = match table.or("head_dim", default)? {
        Some(width) => width,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        None => {
            return Err(format!(
                "`head_dim` is not stated, and `hidden_size` {hidden} is no multiple of `num_attention_heads` {heads}"
            ));
        }
    };
    if (1..=LARGEST).contains(&width) && width.is_multiple_of(2) {
        return Ok(width);
    }
    Err(format!(
        "`head_dim` is {width}: it must be even and between 2 and {LARGEST}"
    ))
}

/// How far each layer looks back.
fn windows(table: &Table, architecture: Architecture, layers: usize) -> Result<Vec<Option<usize>>, String> {
    let default = architecture.defaults().window;
    let is_qwen3 = architecture == Architecture::Qwen3;
    let is_off = is_qwen3 && !table.get("use_sliding_window")?.unwrap_or(false);
    let window = table.or("sliding_window", default)?.filter(|_: &usize| !is_off);
    if window == Some(0) {
        return Err("`sliding_window` is 0: a query must see itself".into());
    }
    // Qwen3's first `max_window_layers` layers see everything.
    let full = if is_qwen3 {
        table.get("max_window_layers")?.unwrap_or(28)
    } else {
        0
    };
    let plain: Vec<_> = (0..layers)
        .map(|layer| window.filter(|_| layer >= full))
        .collect();
    let Some(types) = table.get::<Vec<String>>("layer_types")? else {
        return Ok(plain);
    };
    let typed = typed_windows(&types, window, layers)?;
    // transformers follows `layer_types` in Qwen3 alone.
    if is_qwen3 || typed == plain {
        return Ok(typed);
    }
    Err(format!(
        "`layer_types` and `sliding_window` disagree in a {} model, where transformers ignores `layer_types`: remove one of them",
        architecture.name()
    ))
}

fn typed_windows(
    types: &[String],
    window: Option<usize>,
    layers: usize,
) -> Result<Vec<Option<usize>>, String> {
    if types.len() != layers {
        return Err(format!("`layer_types` names {} layers of {layers}", types.len()));
    }
    types
        .iter()
        .map(|kind| match (kind.as_str(), window) {
            ("full_attention", _) => Ok(None),
            ("sliding_attention", Some(window)) => Ok(Some(window)),
            ("sliding_attention", None) => Err(
                "`layer_types` has `sliding_attention`, but there is no window: state `sliding_window`, and `use_sliding_window` true for Qwen3"
                    .into(),
            ),
            (other, _) => Err(format!(
                "`layer_types` has `{other}`: known are full_attention and sliding_attention"
            )),
        })
        .collect()
}
