//! The results of both programs side by side.

use std::fmt::Write;

use capo_core::table::{Align, Table};
use serde_json::Value;

/// A Markdown table: one line for each measurement of Capo's, PyTorch's beside it.
pub(crate) fn render(device: &str, peak_tflops: Option<f64>, lines: &[Value]) -> String {
    let mut text = format!("{device}\n");
    if let Some(peak) = peak_tflops {
        let _ = writeln!(text, "MFU is of {peak} · 10¹² operations per second.");
    }
    for line in lines.iter().filter(|line| line["mode"] == "parity") {
        let verdict = line["error"].as_str().unwrap_or("passed");
        let _ = writeln!(text, "Parity with PyTorch in f32: {verdict}.");
    }
    text.push_str(
        "Times are the best of some. PyTorch decodes eagerly with a growing cache, and its adapters are in f32.\n\n",
    );
    let mut table = Table::new([
        "shape",
        "what",
        "Capo, tokens/s",
        "PyTorch, tokens/s",
        "ratio",
        "MFU",
        "PyTorch's",
        "peak memory, MiB",
        "PyTorch's",
    ])
    .aligned([Align::Left, Align::Left]);
    let of = |program: &'static str| move |line: &&Value| line["program"] == program;
    for own in lines
        .iter()
        .filter(of("capo"))
        .filter(|line| line["mode"] != "parity")
    {
        let same = |name: &str, line: &Value| line[name] == own[name];
        let other = lines.iter().filter(of("pytorch")).find(|line| {
            ["config", "mode", "batch", "seq", "new_tokens"]
                .iter()
                .all(|name| same(name, line))
        });
        let speed = |line: &Value| line["tokens_per_s"].as_f64();
        let (fast, slow) = (speed(own), other.and_then(speed));
        let flops = own["flops_per_token"].as_f64();
        let utilisation = |speed: Option<f64>| Some(100.0 * speed? * flops? / (peak_tflops? * 1e12));
        table.row([
            text_of(own, "config"),
            what(own),
            number(fast, 0, &failure(Some(own))),
            number(slow, 0, &failure(other)),
            number(fast.zip(slow).map(|(fast, slow)| fast / slow), 2, ""),
            number(utilisation(fast), 1, ""),
            number(utilisation(slow), 1, ""),
            number(memory(own), 0, ""),
            number(other.and_then(memory), 0, ""),
        ]);
    }
    text + &table.markdown()
}

fn text_of(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

fn what(line: &Value) -> String {
    let batch = &line["batch"];
    if line["mode"] == "train" {
        format!("LoRA step {batch} × {}", line["seq"])
    } else {
        format!("decode, batch {batch}")
    }
}

/// On the device where it was looked at, else of the process.
fn memory(line: &Value) -> Option<f64> {
    let on_device = line["peak_device_mib"].as_f64();
    on_device.or_else(|| line["peak_rss_mib"].as_f64())
}

fn failure(line: Option<&Value>) -> String {
    match line {
        None => "not measured".to_owned(),
        Some(line) => {
            let reason = line["error"].as_str().unwrap_or("no number");
            format!("failed: {}", reason.replace('\n', " "))
        }
    }
}

fn number(number: Option<f64>, digits: usize, absent: &str) -> String {
    number.map_or_else(|| absent.to_owned(), |number| format!("{number:.digits$}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_programs_stand_in_one_line() {
        let lines = [
            json!({ "program": "capo", "mode": "parity" }),
            json!({
                "program": "capo", "mode": "train", "config": "qwen3-8b", "batch": 8, "seq": 512,
                "tokens_per_s": 12_000.0, "flops_per_token": 3.3e10, "peak_device_mib": 40_000.0,
            }),
            json!({
                "program": "pytorch", "mode": "train", "config": "qwen3-8b", "batch": 8, "seq": 512,
                "tokens_per_s": 10_000.0, "peak_device_mib": 50_000.4,
            }),
            json!({
                "program": "pytorch", "mode": "train", "config": "qwen3-0.6b", "batch": 8, "seq": 512,
                "tokens_per_s": 1.0,
            }),
        ];
        let text = render("NVIDIA H200", Some(989.0), &lines);
        assert!(text.contains("Parity with PyTorch in f32: passed."), "{text}");
        let row = "|qwen3-8b|LoRAstep8×512|12000|10000|1.20|40.0|33.4|40000|50000|";
        assert!(text.replace(' ', "").contains(row), "{text}");
    }

    #[test]
    fn what_failed_says_so() {
        let lines = [
            json!({ "program": "capo", "mode": "parity", "error": "parity failed" }),
            json!({ "program": "capo", "mode": "decode", "config": "micro", "batch": 1, "error": "out of\nmemory" }),
        ];
        let text = render("a device", None, &lines);
        assert!(
            text.contains("Parity with PyTorch in f32: parity failed."),
            "{text}"
        );
        let row = "|micro|decode,batch1|failed:outofmemory|notmeasured||||||";
        assert!(text.replace(' ', "").contains(row), "{text}");
    }
}
