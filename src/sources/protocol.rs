//! The requests to the renderer and its answers, as JSON. `renderer/protocol.go` describes them.

use berth_base::text::base64;
use serde::{Deserialize, Serialize};

/// The first line of the program's identity, for this protocol.
pub(crate) const PROTOCOL: &str = "berth-renderer protocol 1";

/// The renderer no longer keeps a tree.
pub(crate) const TREE_UNKNOWN: &str = "tree-unknown";

/// The renderer has a limit, or a fault of its own: another try may succeed.
const OF_THE_RENDERER: [&str; 2] = ["limit", "internal"];

#[derive(Serialize)]
pub(crate) struct Message<'a> {
    pub id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<InTree<'a, HelmRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<InTree<'a, KustomizeRequest>>,
}

#[derive(Serialize)]
pub(crate) struct TreeMessage<'a> {
    pub name: &'a str,
    pub files: Vec<FileMessage<'a>>,
}

#[derive(Serialize)]
pub(crate) struct FileMessage<'a> {
    pub path: &'a str,
    pub mode: &'static str,
    pub data: Base64,
}

pub(crate) struct Base64(String);

impl Base64 {
    pub fn of(bytes: &[u8]) -> Base64 {
        Base64(base64::encode(bytes))
    }
}

impl Serialize for Base64 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A request about a tree.
#[derive(Serialize)]
pub(crate) struct InTree<'a, T> {
    pub tree: &'a str,
    #[serde(flatten)]
    pub request: &'a T,
}

/// The inputs of a chart besides its tree.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelmRequest {
    /// The folder of the chart in the tree.
    pub path: String,
    pub release: String,
    pub namespace: String,
    /// Later documents win.
    pub values: Vec<Values>,
    pub kube_version: String,
    pub api_versions: Vec<String>,
    pub crds: bool,
    pub hooks: bool,
    pub tests: bool,
    /// `refuse`, or `empty`.
    pub lookup: &'static str,
    /// The answer lists where each value comes from.
    pub origins: bool,
}

/// A document of values.
#[derive(Clone, Debug, Serialize)]
pub struct Values {
    /// The place for messages.
    pub name: String,
    pub text: String,
}

/// The inputs of a base besides its tree.
#[derive(Clone, Debug, Serialize)]
pub struct KustomizeRequest {
    /// The folder of the base in the tree.
    pub path: String,
}

#[derive(Deserialize)]
pub(crate) struct Reply {
    pub id: u64,
    pub tree: Option<serde_json::Value>,
    pub helm: Option<HelmAnswer>,
    pub kustomize: Option<KustomizeAnswer>,
    pub error: Option<SourceFault>,
}

/// The rendered documents of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Helm(HelmAnswer),
    Kustomize(KustomizeAnswer),
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct HelmAnswer {
    #[serde(deserialize_with = "null_as_default")]
    pub crds: Vec<Document>,
    #[serde(deserialize_with = "null_as_default")]
    pub documents: Vec<Document>,
    #[serde(deserialize_with = "null_as_default")]
    pub hooks: Vec<Hook>,
    /// Hooks with an event that Helm does not know.
    #[serde(deserialize_with = "null_as_default")]
    pub dropped: Vec<Document>,
    /// The merged values.
    pub values: serde_json::Value,
    #[serde(deserialize_with = "null_as_default")]
    pub origins: Vec<ValueOrigin>,
    #[serde(deserialize_with = "null_as_default")]
    pub warnings: Vec<String>,
}

/// The document that sets a merged value: one of the request, or a file of the chart.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct ValueOrigin {
    pub keys: Vec<String>,
    pub file: String,
    pub line: u32,
}

/// A rendered document, with the template that it came from: the name of the chart, and the path in it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Document {
    pub file: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Hook {
    pub file: String,
    pub kind: String,
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub events: Vec<String>,
    pub weight: i64,
    pub text: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct KustomizeAnswer {
    #[serde(deserialize_with = "null_as_default")]
    pub documents: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub warnings: Vec<String>,
}

/// The fault of a source, with its place.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct SourceFault {
    pub kind: String,
    /// A path of the tree, or the name of a document of values.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub advice: String,
    /// The calls that led to this place, the outermost first.
    #[serde(deserialize_with = "null_as_default")]
    pub trace: Vec<Call>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Call {
    pub file: String,
    pub line: u32,
}

impl SourceFault {
    /// Reports whether the same request may succeed another time, or on another machine.
    pub(crate) fn is_of_renderer(&self) -> bool {
        OF_THE_RENDERER.contains(&&*self.kind)
    }
}

/// Go writes an empty list as `null`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
