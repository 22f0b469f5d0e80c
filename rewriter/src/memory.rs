//! Peak memory of the process.

/// The most main memory that this process has had at a time, in bytes; none where the system does not tell.
///
/// Source: `VmHWM` in `/proc/self/status`, see proc_pid_status(5).
pub fn peak_bytes() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_status() {
        assert_eq!(peak_in("Name:\tcapo\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(peak_in("Name:\tcapo\n"), None);
        #[cfg(target_os = "linux")]
        assert!(peak_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
