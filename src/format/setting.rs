//! Labels on screen of the keys of a study file.

/// What a key is called on screen.
pub fn setting(key: &str) -> String {
    let known = match key {
        "parents" => "Parents per round",
        "children" => "Children per parent",
        "pool" => "Pool",
        "best" => "Leading candidates",
        "beta" => "Dual step β",
        "lambda_max" => "Cap λmax",
        "lambda_init" => "First λ",
        "gamma" => "Selection γ",
        "noise" => "Noise σ",
        "mask" => "Eligible parents",
        "dual_step" => "How multipliers move",
        "count_satisfied" => "Step when satisfied",
        "kp" => "Gain kp",
        "ki" => "Gain ki",
        "kd" => "Gain kd",
        "rho" => "Penalty ρ",
        "k" => "Rewrites",
        "weight" => "Weight of constraints",
        "usd" => "Dollars",
        "seconds" => "Time",
        "max_steps" => "Most steps",
        "base_url" => "Base URL",
        "api_key_env" => "Variable of the key",
        "max_tokens" => "Most tokens an answer",
        "timeout_seconds" => "Patience, seconds",
        "concurrency" => "Calls at a time",
        "abort_after" => "Give up after failures",
        "rewrite_form" => "Asked for rewrites",
        "latency" => "Seconds per simulated second",
        other => return super::label(other),
    };
    known.to_owned()
}
