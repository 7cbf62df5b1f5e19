//! The programs of others that tests run, each made once by a script of `tests/` into a cache outside the clone.
//! Finding none is a skipped test, or under `CI=true` a failed one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes what a script makes, and returns the folder. `name` is what people call it: with the variable
/// `BERTH_TESTS_WITHOUT_<NAME>`, nothing is made. Only tests that are ignored unless asked for may call this, so that a
/// plain `cargo test` needs Rust, a C compiler and git alone.
pub fn made(script: &[&str], name: &str) -> Result<PathBuf, String> {
    let is_asked_for =
        std::env::args().any(|argument| ["--ignored", "--include-ignored", "--bench"].contains(&&*argument));
    assert!(is_asked_for, "this test needs {name}: mark it with `#[ignore = \"needs …\"]`");
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

/// Writes a script that can be run at once. Another process writes it: what this one has open, a child of another test may
/// inherit for a moment, and a file that is open for writing does not run.
#[track_caller]
pub fn write_script(path: &Path, lines: &str) {
    write_program(path, &format!("#!/bin/sh\n{lines}\n"));
}

/// The same for a script that names its own interpreter.
#[track_caller]
pub fn write_program(path: &Path, text: &str) {
    let fresh = path.with_extension("fresh");
    let mut install = super::hermetic("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(&fresh).stdin(Stdio::piped());
    let mut running = install.spawn().expect("install runs");
    let mut input = running.stdin.take().expect("an input");
    input.write_all(text.as_bytes()).expect("install reads");
    drop(input);
    assert!(running.wait().expect("install ends").success());
    std::fs::rename(fresh, path).expect("a file");
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
