use proptest::prelude::*;

use crate::transport::credentials::Secret;
use crate::transport::remote::{RemoteUrl, shows_password};

fn clean(text: &str) -> String {
    RemoteUrl::parse(text, false).map_or_else(|error| format!("refused: {error}"), |url| url.to_string())
}

#[test]
fn credentials_are_taken_out_of_an_address() {
    let url = RemoteUrl::parse("https://ann:p%40ss@host.example:8443/fleet.git", false).unwrap();
    assert_eq!(url.to_string(), "https://host.example:8443/fleet.git");
    assert_eq!((url.username.as_deref(), url.password.clone()), (Some("ann"), Some(Secret::new("p@ss"))));
    assert!(!format!("{url:?}").contains("ann"));
    assert_eq!(clean("ssh://git@host/fleet.git"), "ssh://git@host/fleet.git");
    assert_eq!(clean("git@host:team/fleet.git"), "git@host:team/fleet.git");
    assert_eq!(clean("/srv/fleet.git"), "/srv/fleet.git");
    assert_eq!(clean("file:///srv/fleet.git"), "file:///srv/fleet.git");
}

#[test]
fn addresses_that_run_programs_or_send_in_the_clear_are_refused() {
    for bad in [
        "ext::sh -c id",
        "ext::sh",
        "fd::17",
        "http::https://host/x",
        "ftp://host/x",
        "http://host/x",
        "git://host/x",
        "ssh://-oProxyCommand=id/x",
        "ssh://git@-oProxyCommand=id/x",
        "-oProxyCommand=id:x",
        "git@-host:x",
        "--upload-pack=id",
        "https:///x",
        "file://host/x",
        "https://host/a\nb",
        "",
    ] {
        assert!(clean(bad).starts_with("refused"), "{bad}: {}", clean(bad));
    }
    assert_eq!(RemoteUrl::parse("git://host/x", true).unwrap().to_string(), "git://host/x");
    let error = RemoteUrl::parse("ftp://ann:secret@host/x", false).unwrap_err().to_string();
    assert!(error.contains("ftp") && !error.contains("secret"), "{error}");
}

#[test]
fn a_password_on_the_command_line_is_noticed() {
    assert!(shows_password("--remote=https://ann:secret@host/x"));
    assert!(shows_password("http://ann:secret@proxy:3128"));
    for fine in
        ["https://ann@host/x", "ssh://git@host:22/x", "git@host:x", "https://host:8443/x", "Ann <a@b.c>"]
    {
        assert!(!shows_password(fine), "{fine}");
    }
}

proptest! {
    #[test]
    fn no_address_panics_or_shows_its_password(text in "\\PC{0,40}", scheme in "(https|http|ssh|git|ext|x)(://|::|:)") {
        let _ = RemoteUrl::parse(&text, true);
        let _ = shows_password(&text);
        let url = format!("{scheme}ann:SECRET@{text}");
        let shown = RemoteUrl::parse(&url, true).map_or_else(|error| error.to_string(), |url| url.to_string());
        prop_assert!(!scheme.ends_with("//") || !shown.contains("SECRET"), "{}", shown);
    }
}
