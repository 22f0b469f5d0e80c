//! Running other programs: printed before they start, an error when they fail.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Prints the command line, runs it with this process's output, and waits.
///
/// # Errors
/// The program cannot be started, or ends with anything but success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs the command quietly and returns its standard output.
///
/// # Errors
/// The program cannot be started, fails (its standard error is quoted), or
/// prints something that is not UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed ({}): {}", output.status, reason.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// Whether the command can be started and succeeds; it prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it: changed environment, program, arguments.
pub(crate) fn line(command: &Command) -> String {
    let environment = command.get_envs().filter_map(|(name, value)| {
        // The search path is long, and the same for every command of a run.
        let (name, value) = (name.to_str()?, value?.to_str()?);
        (name != "PATH").then(|| format!("{name}={}", quoted(value)))
    });
    let program = std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program)
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()));
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '"', '\'', '$', '\\']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("/toolchain/bin/cargo");
        command
            .args(["doc", "--no-deps", "it's"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .env("PATH", "/bin");
        assert_eq!(
            line(&command),
            r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'"
        );
    }

    #[test]
    fn a_failing_command_is_an_error_that_quotes_it() {
        let error = run(Command::new("cargo").arg("--no-such-flag")).unwrap_err();
        assert!(error.to_string().contains("`cargo --no-such-flag` failed"));
        let error = output(Command::new("cargo").arg("--no-such-flag")).unwrap_err();
        assert!(error.to_string().contains("unexpected argument"));
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_it() {
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot start `no-such-program`"));
        assert!(!succeeds(&mut Command::new("no-such-program")));
    }
}
