//! KubeFedCluster → cluster. Without a status the cluster counts as ready; with one, only a condition `Ready`
//! that is `True` makes it ready.

use crate::dialects::{Document, clusters};
use berth_base::meta::names::is_dns_subdomain;
use berth_base::meta::{Metadata, open};
use berth_base::model::Cluster;
use berth_base::model::cluster::{Readiness, Report};
use berth_base::text::base64;
use berth_base::yaml::{Fields, Form, Scope};

const TLS_CHECKS: [&str; 3] = ["*", "SubjectName", "ValidityPeriod"];

pub(super) fn read(scope: &Scope, document: &Document) -> Option<Cluster> {
    let root = document.open();
    let (mut fields, metadata) = open(scope, &root)?;
    if !metadata.name.is_empty() && !is_dns_subdomain(&metadata.name) {
        scope.error(
            metadata.name_at,
            format!("metadata.name: `{}` is not a valid cluster name", metadata.name),
        );
    }
    if let Some(spec) = fields.required_fields("spec") {
        check_spec(spec);
    }
    let standing = fields.fields("status").map_or(Readiness::Assumed, read_status);
    fields.finish();
    let Metadata { name, labels, deleting, .. } = metadata;
    Some(Cluster {
        name: name.into(),
        labels,
        standing,
        applier: clusters::read_applier(scope, &root),
        leaving: deleting,
        origins: vec![document.at.clone()],
        ..Cluster::default()
    })
}

fn check_spec(mut spec: Fields<'_>) {
    if let Some(fault) = spec.required_str("apiEndpoint").and_then(fault_of_endpoint) {
        spec.error_at("apiEndpoint", format!("spec.apiEndpoint is not a usable address: {fault}"));
    }
    if spec.str("caBundle").is_some_and(|bundle| !is_base64(bundle)) {
        spec.error_at("caBundle", "spec.caBundle must be base64");
    }
    if let Some(mut secret) = spec.required_fields("secretRef") {
        if secret.required_str("name").is_some_and(|name| !is_dns_subdomain(name)) {
            secret.error_at("name", "spec.secretRef.name is not a valid name of a Secret");
        }
        secret.finish();
    }
    spec.takes("disabledTLSValidations[0]", Form::Word(TLS_CHECKS.to_vec()));
    let checks = spec.strings("disabledTLSValidations").unwrap_or_default();
    for check in checks.iter().filter(|check| !TLS_CHECKS.contains(check)) {
        let message =
            format!("spec.disabledTLSValidations has `{check}`, but knows only {}", TLS_CHECKS.join(", "));
        spec.error_at("disabledTLSValidations", message);
    }
    if checks.contains(&"*") && checks.len() > 1 {
        spec.error_at("disabledTLSValidations", "spec.disabledTLSValidations must have nothing beside `*`");
    }
    if let Some(fault) = spec.str("proxyURL").filter(|url| !url.is_empty()).and_then(fault_of_proxy) {
        spec.error_at("proxyURL", format!("spec.proxyURL is not a usable address: {fault}"));
    }
    spec.finish();
}

fn read_status(mut status: Fields<'_>) -> Readiness {
    if status.entries().is_empty() {
        return Readiness::Assumed;
    }
    status.str("kubernetesVersion");
    status.str("region");
    status.strings("zones");
    let mut ready = false;
    for mut condition in status.each("conditions") {
        condition.require("type");
        condition.require("status");
        let kind = condition.choice("type", &["Ready", "Offline", "ConfigMalformed"]);
        let value = condition.choice("status", &["True", "False", "Unknown"]);
        ready |= kind == Some("Ready") && value == Some("True");
    }
    Readiness::Reported(Report { ready: Some(ready), ..Report::default() })
}

fn is_base64(text: &str) -> bool {
    base64::decode(&text.split_ascii_whitespace().collect::<String>()).is_some()
}

/// Returns the fault of an API server's address.
pub(super) fn fault_of_endpoint(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            fault_of_scheme(scheme, &["http", "https"]).or_else(|| fault_of_authority(rest))
        }
        None => fault_of_authority(text),
    }
}

/// Returns the fault of a proxy's address.
pub(super) fn fault_of_proxy(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            fault_of_scheme(scheme, &["http", "https", "socks5"]).or_else(|| fault_of_authority(rest))
        }
        None => Some("it has no scheme".to_owned()),
    }
}

fn fault_of_scheme(scheme: &str, known: &[&str]) -> Option<String> {
    let found = known.iter().any(|one| one.eq_ignore_ascii_case(scheme));
    (!found).then(|| format!("its scheme is `{scheme}`, but must be {}", known.join(" or ")))
}

fn fault_of_authority(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Some("it names no host".to_owned());
    }
    let port_is_good = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number > 0));
    (!port_is_good).then(|| "its port must be a number from 1 to 65535".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_urls_are_accepted() {
        for good in
            ["a.example.com", "a:6443", "https://a:6443/x", "http://[::1]:80", "[fe80::1]", "10.0.0.1"]
        {
            assert_eq!(fault_of_endpoint(good), None, "{good}");
        }
        assert_eq!(fault_of_proxy("socks5://proxy:1080"), None);
    }

    #[test]
    fn other_schemes_ports_and_empty_hosts_are_not() {
        for bad in ["ftp://a", "a:0", "a:70000", "https://", ":6443", "a:b", "https://a b"] {
            assert!(fault_of_endpoint(bad).is_some(), "{bad}");
        }
        assert!(fault_of_proxy("proxy:1080").is_some());
    }
}
