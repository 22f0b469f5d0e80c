//! How much memory a measurement took.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Between two looks at the GPU.
const PERIOD: Duration = Duration::from_millis(100);

/// Most memory that this process had in use, on Linux.
pub(crate) fn peak_rss_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// Most memory in use on the GPU of that index while `child` runs, by all programs together, seen every
/// tenth of a second; `None` where no `nvidia-smi` tells.
pub(crate) fn peak_device_mib(index: usize, child: &mut Child) -> std::io::Result<Option<f64>> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak: Option<f64> = None;
            while !is_over.load(Ordering::Relaxed) {
                match used_mib(index) {
                    Some(used) => peak = Some(peak.map_or(used, |peak| peak.max(used))),
                    None => return peak,
                }
                thread::sleep(PERIOD);
            }
            peak
        });
        let ended = child.wait();
        is_over.store(true, Ordering::Relaxed);
        let peak = watcher.join().unwrap_or(None);
        ended.map(|_| peak)
    })
}

fn used_mib(index: usize) -> Option<f64> {
    let printed = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i"])
        .arg(index.to_string())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8(printed.stdout).ok()?.trim().parse().ok()
}
