//! The programs of others that tests run, each made once by a script of `tests/` into a cache outside the clone.
//! Finding none is a skipped test, or under `CI=true` a failed one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes what a script makes, and returns the folder. `name` is what people call it: with the variable
/// `BERTH_TESTS_WITHOUT_<NAME>`, nothing is made.
pub fn made(script: &[&str], name: &str) -> Result<PathBuf, String> {
    let unwanted = format!("BERTH_TESTS_WITHOUT_{}", name.to_uppercase());
    if std::env::var_os(&unwanted).is_some() {
        return Err(format!("{unwanted} is set"));
    }
    let [program, arguments @ ..] = script else { return Err("no script".to_owned()) };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program);
    // Its stderr is this process's, so that minutes of building do not pass in silence.
    let output = Command::new(&program).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{}` does not run: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("`{}` failed and said why", program.display()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
}

/// Says that the running test is skipped for want of something; fails it where that may not be.
pub fn skipped(what: &str, why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        !std::env::var("CI").is_ok_and(|value| value == "true"),
        "`{test}` needs {what}, and under CI=true it may not be skipped: {why}"
    );
    // Unlike `eprintln!`, this is shown for passing tests too.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it needs {what}: {why}");
}
