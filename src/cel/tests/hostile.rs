use proptest::prelude::*;

use super::{NAMES, fails, run};
use crate::Program;

#[test]
fn deep_and_long_texts_are_refused_and_crash_nothing() {
    let nested = |open: &str, close: &str, count| format!("{}1{}", open.repeat(count), close.repeat(count));
    for text in [
        nested("(", ")", 4000),
        nested("[", "]", 4000),
        nested("{1:", "}", 2000),
        nested("size(", ")", 1500),
        nested("true ? 1 : ", "", 700),
        format!("1{}", " + 1".repeat(2000)),
        format!("it{}", ".a".repeat(4000)),
        format!("it{}", "[0]".repeat(3000)),
        nested("[1].map(x, ", ")", 700),
        "x".repeat(20_000),
    ] {
        let fault = Program::compile(&text, NAMES).expect_err("it is too deep or too long");
        assert!(fault.message.contains("at most"), "{}", fault.message);
    }
    // The deepest allowed nesting, in a thread's small stack.
    let deep = nested("[1].map(x, ", ")", 45);
    assert!(run(&deep).is_ok(), "{:?}", run(&deep));
    assert!(run(&nested("(", ")", 49)).is_ok());
    // Chains of one operator may have any length.
    assert!(run(&format!("true{}", " && true".repeat(1000))).is_ok());
    assert!(run(&format!("{}true", "!".repeat(9000))).is_ok());
    assert!(run(&format!("{}1 == 1", "-".repeat(8000))).is_ok());
}

#[test]
fn work_that_never_ends_is_stopped() {
    let mut loops = "true".to_owned();
    for depth in 0..9 {
        loops = format!("[0,1,2,3,4,5,6,7,8,9].all(x{depth}, {loops})");
    }
    let mut growing = "'aaaaaaaaaa'".to_owned();
    for _ in 0..20 {
        growing = format!("{growing}.replace('a', 'aaaaaaaaaa')");
    }
    let mut doubling = "optional.of([1, 1])".to_owned();
    for depth in 0..40 {
        doubling = format!("{doubling}.optMap(x{depth}, [x{depth}, x{depth}])");
    }
    let texts = [
        loops,
        format!("size({growing}) > 0"),
        format!("'%s'.format([{doubling}.value()]) == ''"),
        format!("{doubling} == {doubling}"),
        format!("'%s'.format(['{}'.split('').map(x, it)]) == ''", "a".repeat(9000)),
        format!("'{}'.split('').exists(x, '{}'.matches(x + '(a*)*b'))", "a".repeat(2000), "a".repeat(2000)),
    ];
    let wanted: Vec<(&str, &str)> =
        texts.iter().map(|text| (text.as_str(), "takes more than 100000 steps")).collect();
    fails(&wanted);
}

#[test]
fn patterns_that_would_become_huge_are_refused() {
    fails(&[
        ("'a'.matches('(a{1000}){1000}')", "too large"),
        ("'a'.matches(it.name + '(a{1000}){1000}')", "too large"),
    ]);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = run(&text);
    }

    #[test]
    fn nothing_made_of_the_languages_own_words_panics(words in prop::collection::vec(prop::sample::select(vec![
        "it", ".name", ".labels", "['env']", "[0]", "[?1]", ".?a", "(", ")", "[", "]", "{", "}", ",", ":", "?",
        "+", "-", "*", "/", "%", "!", "==", "<", "in", "&&", "||", "1", "-9223372036854775808", "0u", "1.5", "'é'",
        "b'x'", "null", "true", "x", "size(", ".map(x,", ".all(x,", ".split('')", ".substring(-1)", ".charAt(9)",
        "quantity('1')", "semver('1.2.3')", ".major()", "duration('1s')", "timestamp(0)", "optional.none()",
        ".orValue(", "has(", "type(", "int(", "'%s'.format([", ".lastIndexOf('', 1)", "cidr('::/0')", ".masked()",
    ]), 0..24)) {
        let _ = run(&words.concat());
        let _ = run(&words.join(" "));
    }
}
