//! A kubeconfig and a context → a client for one API server, with time limits.

use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::error::LiveError;

/// Which cluster, and how long it may take.
#[derive(Clone, Debug)]
pub struct Access {
    /// `None` for what `KUBECONFIG` names, or the file in the home folder.
    pub kubeconfig: Option<PathBuf>,
    /// `None` for the file's current one.
    pub context: Option<String>,
    /// For a connection, and for each answer.
    pub patience: Duration,
}

/// A client for a member that writes, and where its server is. Without a kubeconfig, and where a pod's
/// credentials are at hand, these are used. The client tries nothing again by itself.
pub async fn connect_member(access: &Access) -> Result<(Client, String), LiveError> {
    let named = access.kubeconfig.is_some() || access.context.is_some();
    let elsewhere = named || std::env::var_os("KUBECONFIG").is_some();
    let mut config = match Config::incluster() {
        Ok(config) if !elsewhere => config,
        _ => configure(access).await?.0,
    };
    config.default_retry = false;
    finish(config, access, "the usual places")
}

/// A client, and where its server is.
pub(super) async fn connect(access: &Access) -> Result<(Client, String), LiveError> {
    let (config, from) = configure(access).await?;
    finish(config, access, &from)
}

/// What the kubeconfig says, and where it is from.
async fn configure(access: &Access) -> Result<(Config, String), LiveError> {
    let (read, from) = match &access.kubeconfig {
        Some(path) => (Kubeconfig::read_from(path), path.display().to_string()),
        None => (Kubeconfig::read(), "the usual places".to_owned()),
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
        .map_err(|error| unusable(error.to_string()))?;
    if !has_proxy {
        // Only a proxy that the kubeconfig names counts: one of the environment is for other hosts.
        config.proxy_url = None;
    }
    Ok((config, from))
}

fn finish(mut config: Config, access: &Access, from: &str) -> Result<(Client, String), LiveError> {
    let unusable = |why: String| LiveError::Config { from: from.to_owned(), why };
    config.connect_timeout = Some(access.patience);
    config.read_timeout = Some(access.patience);
    // In a cluster's audit log, berth is to be told from others.
    if let (Ok(name), Ok(value)) =
        ("user-agent".parse(), concat!("berth/", env!("CARGO_PKG_VERSION")).parse())
    {
        config.headers.push((name, value));
    }
    let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client = Client::try_from(config).map_err(|error| match error {
        kube::Error::ProxyProtocolDisabled { proxy_url, .. }
        | kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            unusable(format!("it names the proxy {proxy_url}, and berth can not go through one"))
        }
        error => unusable(error.to_string()),
    })?;
    Ok((client, server))
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
        error => LiveError::Config { from: from.to_owned(), why: error.to_string() },
    }
}
