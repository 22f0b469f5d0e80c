//! What tests need beside `capo`: `cargo xtask test` installs or starts it, and names it in variables.

use std::env;
use std::fs::File;
use std::io::Write as _;

/// What a variable names, or `None` where it names nothing and the test is to be skipped.
///
/// # Panics
/// As [`skip`] does.
pub fn named(variable: &str) -> Option<String> {
    let value = env::var(variable).ok();
    if value.is_none() {
        skip(&format!("no {variable}, which a step of `cargo xtask test` sets"));
    }
    value
}

/// Says why a test checks nothing: to who runs it alone, and, since nobody sees what one that passes prints, to the gate by
/// the file that `CAPO_TEST_SKIPPED` names.
///
/// # Panics
/// When the environment variable `CI` is set: there, a test that checks nothing must not pass.
pub fn skip(why: &str) {
    assert!(env::var_os("CI").is_none(), "{why}");
    println!("skipped: {why}");
    if let Some(file) = env::var_os("CAPO_TEST_SKIPPED") {
        let file = File::options().create(true).append(true).open(file);
        writeln!(file.expect("the gate's file"), "{why}").expect("the gate's file");
    }
}
