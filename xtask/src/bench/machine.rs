//! What a figure was measured on, without which it says nothing.

use std::process::Command;
use std::time::SystemTime;

use crate::command;
use crate::workspace::Workspace;

/// Processor, cores, date, compiler and commit, on two lines.
pub(super) fn describe(workspace: &Workspace) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let day = now.split('T').next().unwrap_or_default();
    let rustc = printed(Command::new("rustc").arg("--version"));
    let commit = printed(
        Command::new("git")
            .current_dir(&workspace.root)
            .args(["describe", "--always", "--dirty"]),
    );
    format!(
        "{}, {cores} cores, {}\n{day}, {rustc}, commit {commit}\n",
        processor(),
        std::env::consts::OS,
    )
}

fn processor() -> String {
    match std::fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => model_name(&text).unwrap_or(std::env::consts::ARCH).to_owned(),
        Err(_) => printed(Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"])),
    }
}

fn model_name(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

fn printed(command: &mut Command) -> String {
    command::output(command).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processors_name() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nflags\t: fpu\n";
        assert_eq!(model_name(text), Some("Some CPU @ 2.50GHz"));
        assert_eq!(model_name("CPU part\t: 0xd40\n"), None);
    }
}
