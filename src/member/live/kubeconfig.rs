//! Builds a client for one API server from a kubeconfig and a context, with time limits.
//!
//! A kubeconfig is full of secrets. So an error names only the kind and place of a fault, and never the part of an
//! address before its host.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use kube::config::{
    AuthInfo, Cluster, Config, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError,
    NamedAuthInfo, NamedCluster, NamedContext,
};

use super::error::{LiveError, reason};

/// A cluster and the time limit of a request to it.
#[derive(Clone, Debug)]
pub struct Access {
    /// `None`: the file that `KUBECONFIG` names, or the one in the home folder.
    pub kubeconfig: Option<PathBuf>,
    /// `None`: the file's current context.
    pub context: Option<String>,
    /// The time limit of a connection, and of each answer.
    pub patience: Duration,
    /// The folder of the pod's credentials; `None` for the usual one.
    pub pod: Option<PathBuf>,
}

/// The folder in which the kubelet puts a pod's credentials.
const POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Connects a member that writes. Returns the client and its server's address. Without a kubeconfig, uses the pod's
/// credentials, if there are any. The client itself retries nothing.
pub(super) async fn connect_member(access: &Access) -> Result<(Client, String), LiveError> {
    let named = access.kubeconfig.is_some() || access.context.is_some();
    let elsewhere = named || std::env::var_os("KUBECONFIG").is_some();
    let mut config = match of_pod(access).filter(|_| !elsewhere) {
        Some((kubeconfig, from)) => {
            let unusable = |error| LiveError::Config { from, why: fault(&error) };
            let read = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
            let mut config = read.map_err(unusable)?;
            config.proxy_url = None;
            config
        }
        None => configure(access).await?.0,
    };
    config.default_retry = false;
    // Watches are open for long; their callers limit the time.
    finish(config, access, "the default locations", None)
}

/// Builds a kubeconfig from a pod's own credentials. Returns it with their folder, or `None` outside of a pod. It
/// names the token's file instead of the token, because the kubelet replaces it.
fn of_pod(access: &Access) -> Option<(Kubeconfig, String)> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (host, port) = (set("KUBERNETES_SERVICE_HOST")?, set("KUBERNETES_SERVICE_PORT")?);
    let folder = access.pod.clone().unwrap_or_else(|| PathBuf::from(POD));
    let file =
        |name: &str| Some(folder.join(name)).filter(|path| path.is_file())?.to_str().map(str::to_owned);
    let (token, authority) = (file("token")?, file("ca.crt")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let name = "pod".to_owned();
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(authority),
        ..Cluster::default()
    };
    let user = AuthInfo { token_file: Some(token), ..AuthInfo::default() };
    let context = Context { cluster: name.clone(), user: Some(name.clone()), ..Context::default() };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster {
            name: name.clone(),
            cluster: Some(cluster),
            other: Default::default(),
        }],
        auth_infos: vec![NamedAuthInfo {
            name: name.clone(),
            auth_info: Some(user),
            other: Default::default(),
        }],
        contexts: vec![NamedContext {
            name: name.clone(),
            context: Some(context),
            other: Default::default(),
        }],
        current_context: Some(name),
        ..Kubeconfig::default()
    };
    Some((kubeconfig, folder.display().to_string()))
}

/// Connects to a server. Returns the client and the server's address.
pub(super) async fn connect(access: &Access) -> Result<(Client, String), LiveError> {
    let (config, from) = configure(access).await?;
    finish(config, access, &from, Some(access.patience))
}

/// Reads the kubeconfig. Returns it with its origin.
async fn configure(access: &Access) -> Result<(Config, String), LiveError> {
    let (read, from) = match &access.kubeconfig {
        Some(path) => (Kubeconfig::read_from(path), path.display().to_string()),
        None => (Kubeconfig::read(), "the default locations".to_owned()),
    };
    let kubeconfig = read.map_err(|error| unreadable(&error, &from))?;
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let wanted = access.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
    if !contexts.contains(&wanted) {
        return Err(LiveError::NoContext { wanted, from, contexts });
    }
    let has_proxy = proxy_of(&kubeconfig, &wanted).is_some();
    let options = KubeConfigOptions { context: Some(wanted.clone()), cluster: None, user: None };
    let unusable = |why: String| LiveError::Config { from: from.clone(), why };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| unusable(fault(&error)))?;
    if !has_proxy {
        // Ignores the environment's proxy, which is for other hosts. Only a proxy in the kubeconfig counts.
        config.proxy_url = None;
    }
    Ok((config, from))
}

fn finish(
    mut config: Config,
    access: &Access,
    from: &str,
    read: Option<Duration>,
) -> Result<(Client, String), LiveError> {
    let unusable = |why: String| LiveError::Config { from: from.to_owned(), why };
    take_trimmed_token(&mut config.auth_info);
    config.connect_timeout = Some(access.patience);
    config.read_timeout = read;
    // A cluster's audit log shows this name.
    if let (Ok(name), Ok(value)) =
        ("user-agent".parse(), concat!("berth/", env!("CARGO_PKG_VERSION")).parse())
    {
        config.headers.push((name, value));
    }
    let server = public(&config.cluster_url.to_string());
    let client = Client::try_from(config).map_err(|error| match error {
        kube::Error::ProxyProtocolDisabled { proxy_url, .. }
        | kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            let proxy = public(&proxy_url.to_string());
            unusable(format!("it names the proxy {proxy}, and berth cannot use a proxy"))
        }
        error => unusable(reason(&error)),
    })?;
    Ok((client, server))
}

/// Reads a token file without its final newline, as kubectl does; the client would send the newline along. When the
/// server rejects the token, the caller reconnects, which reads the file again.
fn take_trimmed_token(auth: &mut AuthInfo) {
    let Some(file) = auth.token_file.as_ref().filter(|_| auth.token.is_none()) else { return };
    // The client reports the fault of an unreadable file.
    let Ok(text) = std::fs::read_to_string(file) else { return };
    let token = text.trim();
    if token.len() < text.len() && !token.is_empty() {
        auth.token = Some(token.to_owned().into());
        auth.token_file = None;
    }
}

fn proxy_of(kubeconfig: &Kubeconfig, context: &str) -> Option<String> {
    let context = kubeconfig.contexts.iter().find(|one| one.name == context)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?;
    cluster.cluster.as_ref()?.proxy_url.clone()
}

fn unreadable(error: &KubeconfigError, from: &str) -> LiveError {
    match error {
        KubeconfigError::ReadConfig(error, path) => {
            LiveError::NoKubeconfig { from: path.display().to_string(), why: error.to_string() }
        }
        KubeconfigError::FindPath => {
            LiveError::NoKubeconfig { from: from.to_owned(), why: "there is no home folder".to_owned() }
        }
        error => LiveError::Config { from: from.to_owned(), why: fault(error) },
    }
}

/// Describes the fault of a kubeconfig without quoting it.
fn fault(error: &KubeconfigError) -> String {
    let data = |what: &str, error: &LoadDataError| match error {
        LoadDataError::ReadFile(error, path) => {
            format!("{what}, {}, cannot be read: {error}", path.display())
        }
        LoadDataError::DecodeBase64(_) => format!("{what} is not base64"),
        LoadDataError::NoBase64DataOrFile => format!("{what} is missing"),
    };
    match error {
        KubeconfigError::Parse(error) => {
            let place = error.location().filter(|location| location.line() > 0);
            let place = place.map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            format!("{}{}", kind_of_fault(&error.to_string()), place.unwrap_or_default())
        }
        KubeconfigError::LoadCertificateAuthority(error) => data("the certificate authority", error),
        KubeconfigError::LoadClientCertificate(error) => data("the client certificate", error),
        KubeconfigError::LoadClientKey(error) => data("the client key", error),
        KubeconfigError::ParseCertificates(_) => "a certificate is not PEM".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the server's address is not a URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => "the proxy's address is not a URL".to_owned(),
        error => error.to_string(),
    }
}

/// Returns the kind of a parser's fault. The rest of its message may quote the file; names of missing fields cannot.
fn kind_of_fault(message: &str) -> String {
    let missing = message.split_once("missing field `").and_then(|(_, rest)| rest.split_once('`'));
    match missing {
        Some((field, _)) => format!("the field `{field}` is missing"),
        None if ["invalid type", "invalid value", "expected"].iter().any(|word| message.contains(word)) => {
            "something of another kind is expected".to_owned()
        }
        None => "it is not well-formed YAML".to_owned(),
    }
}

/// Returns an address without credentials: no user, no password, no query.
pub fn public(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let dots = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{dots}{host}{}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        for (url, shown) in [
            ("https://host:6443/", "https://host:6443"),
            ("https://bob:hunter2@host:6443/a/b/", "https://host:6443/a/b"),
            ("http://bob:a@b@host?token=x#y", "http://host"),
            ("http://[::1]:80/", "http://[::1]:80"),
            ("bob:hunter2@proxy:80", "proxy:80"),
        ] {
            assert_eq!(public(url), shown);
        }
    }

    #[test]
    fn a_faulty_kubeconfig_is_told_by_line_and_column_alone() {
        let head = "apiVersion: v1\nkind: Config\nusers:\n";
        for (user, said) in [
            ("- {name: u, user: \"eyJSECRET\"}", "line 4"),
            ("- {name: u, user: {token: eyJSECRET", "line 4"),
            ("- {name: u, user: {exec: {command: [eyJSECRET]}}}", "line 4"),
            ("- {name: u, user: {exec: {env: eyJSECRET}}}", "line 4"),
            ("- eyJSECRET\n- x: \"", "line"),
            ("  eyJSECRET: &a *b", "line"),
        ] {
            let error = Kubeconfig::from_yaml(&format!("{head}{user}\n")).expect_err(user);
            let told = fault(&error);
            assert!(told.contains(said) && !told.contains("SECRET"), "{user}: {told}");
        }
    }
}
