//! The state of one folder at a program that applies it in berth's place, and the interface to such a
//! program.
//!
//! Such a program quotes servers and webhooks in its messages, which may quote an object. So a message that
//! names Secrets is never shown.

use serde_json::Value as Json;

use crate::sync::health::Health;
use berth_base::model::ObjectId;

/// The state of the wanted folder at the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The program applied exactly this folder, and reports it healthy.
    Applied,
    /// The program has not finished with the folder, for this reason.
    Pending(String),
    /// The program waits, and will not continue by itself.
    Stuck(String),
    /// The program applied exactly this folder, and some objects are unhealthy.
    Unhealthy(String),
    /// The program could not apply this folder.
    Failed(String),
}

impl Standing {
    /// Returns the reason why the folder is not applied or not healthy.
    pub fn words(&self) -> Option<&str> {
        match self {
            Standing::Applied => None,
            Standing::Pending(why) | Standing::Stuck(why) => Some(why),
            Standing::Unhealthy(message) | Standing::Failed(message) => Some(message),
        }
    }
}

/// The place of an object with which a program works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    pub group: &'static str,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl std::fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// A program that applies the folder of a cluster in berth's place.
pub trait Neighbour: std::fmt::Debug {
    /// Returns the program's name, for messages.
    fn name(&self) -> &'static str;

    /// Returns the place of the object with the program's orders and status.
    fn record(&self) -> RecordPlace;

    /// Returns the place of the object that names the folder's origin. `None` if the record is enough.
    fn source(&self, record: &Json) -> Option<RecordPlace>;

    /// Reads the state of the folder that has these revisions: a Git commit, as `sha1:...`, or an artifact's digest.
    fn standing(&self, record: &Json, source: Option<&Json>, revisions: &[String]) -> Standing;

    /// Returns the label selector of all objects that the program applied; empty if they share no label.
    fn selector(&self) -> String;

    /// Reports whether the program applied an object for this record, and will not remove it.
    fn leaves(&self, object: &Json) -> bool;

    /// Reports whether a message of the program names an object.
    fn names(&self, message: &str, id: &ObjectId) -> bool;
}

/// The observed state of a wanted object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub health: Health,
    /// True if the object has every wanted field.
    pub is_as_wanted: bool,
}

/// Judges one wanted object by its folder's state and its live form.
///
/// While the program still works on the folder, even an object with all wanted fields counts as progressing: the
/// program may still change it.
pub fn judge(
    neighbour: &dyn Neighbour,
    standing: &Standing,
    others_are_named: bool,
    id: &ObjectId,
    observed: Option<&Observed>,
) -> Health {
    let name = neighbour.name();
    let live = || match observed {
        Some(observed) => observed.health.clone(),
        None => Health::Progressing("it does not exist".to_owned()),
    };
    match standing {
        Standing::Applied => live(),
        Standing::Pending(why) | Standing::Stuck(why) => Health::Progressing(why.clone()),
        Standing::Unhealthy(message) => match live() {
            Health::Healthy if neighbour.names(message, id) => Health::Failed(format!("{name}: {message}")),
            Health::Healthy if !others_are_named => Health::Progressing(format!("{name}: {message}")),
            Health::Healthy => Health::Healthy,
            Health::Progressing(why) | Health::Failed(why) => {
                Health::Failed(format!("{why}; {name}: {message}"))
            }
        },
        Standing::Failed(message) if neighbour.names(message, id) => {
            Health::Failed(format!("{name}: {message}"))
        }
        Standing::Failed(message) => match observed.is_some_and(|observed| observed.is_as_wanted) {
            true => live(),
            false if others_are_named => {
                Health::Progressing(format!("{name} could not apply the folder: {message}"))
            }
            false => Health::Failed(format!("{name} could not apply the folder: {message}")),
        },
    }
}

/// Replaces a message that names Secrets by the names of the wanted objects in it.
pub(super) fn without_secrets<'a>(
    standing: Standing,
    neighbour: &dyn Neighbour,
    wanted: impl Iterator<Item = &'a ObjectId>,
) -> Standing {
    let message = standing.words().unwrap_or_default();
    let mut words = message.split(|letter: char| !letter.is_ascii_alphanumeric());
    if !words.any(|word| matches!(word, "Secret" | "Secrets" | "secret" | "secrets")) {
        return standing;
    }
    let named = wanted.filter(|id| neighbour.names(message, id)).map(|id| match id.namespace.is_empty() {
        true => format!("[{}/{}] ", id.kind, id.name),
        false => format!("[{}/{}/{}] ", id.kind, id.namespace, id.name),
    });
    let message = format!("{}the message names a Secret, so it is not shown", named.collect::<String>());
    match standing {
        Standing::Applied => Standing::Applied,
        Standing::Pending(_) => Standing::Pending(message),
        Standing::Stuck(_) => Standing::Stuck(message),
        Standing::Unhealthy(_) => Standing::Unhealthy(message),
        Standing::Failed(_) => Standing::Failed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArgoCd, Flux};
    use super::*;

    fn judged(standing: &Standing, others_are_named: bool, observed: Option<(Health, bool)>) -> Health {
        let flux = Flux { namespace: "flux-system".to_owned(), name: "berth-oslo".to_owned() };
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        let observed = observed.map(|(health, is_as_wanted)| Observed { health, is_as_wanted });
        judge(&flux, standing, others_are_named, &web, observed.as_ref())
    }

    #[test]
    fn an_object_is_healthy_only_in_a_folder_that_was_applied() {
        let well = || Some((Health::Healthy, true));
        assert_eq!(judged(&Standing::Applied, false, well()), Health::Healthy);
        let missing = judged(&Standing::Applied, false, None);
        assert_eq!(missing, Health::Progressing("it does not exist".to_owned()));
        for standing in [Standing::Pending("x".to_owned()), Standing::Stuck("x".to_owned())] {
            assert_eq!(judged(&standing, false, well()), Health::Progressing("x".to_owned()));
        }
    }

    #[test]
    fn a_failure_is_of_the_objects_that_it_is_about() {
        let well = || Some((Health::Healthy, true));
        let slow = || Some((Health::Progressing("0 of 1 are ready".to_owned()), true));
        let named = Standing::Unhealthy("failed: [Deployment/shop/web status: 'Failed']".to_owned());
        let other = Standing::Unhealthy("failed: [Deployment/shop/db status: 'Failed']".to_owned());
        assert!(matches!(judged(&named, true, well()), Health::Failed(_)));
        assert!(matches!(judged(&other, true, slow()), Health::Failed(_)));
        assert_eq!(judged(&other, true, well()), Health::Healthy);
        let nobody = Standing::Unhealthy("timeout".to_owned());
        assert!(
            matches!(judged(&nobody, false, well()), Health::Progressing(_)),
            "success is Flux's to tell"
        );

        let (old, new) = (|| Some((Health::Healthy, false)), well);
        let named = Standing::Failed("Deployment/shop/web dry-run failed".to_owned());
        let other = Standing::Failed("Deployment/shop/db dry-run failed".to_owned());
        let nobody = Standing::Failed("BuildFailed: no such file".to_owned());
        assert!(matches!(judged(&named, true, new()), Health::Failed(_)));
        assert!(matches!(judged(&other, true, old()), Health::Progressing(_)));
        assert_eq!(judged(&other, true, new()), Health::Healthy);
        assert!(matches!(judged(&nobody, false, old()), Health::Failed(_)));
    }

    #[test]
    fn a_message_about_a_secret_is_not_shown_and_still_names_its_objects() {
        let flux = Flux { namespace: "flux-system".to_owned(), name: "berth-oslo".to_owned() };
        let argocd = ArgoCd { namespace: "argocd".to_owned(), name: "berth-oslo".to_owned() };
        let key = ObjectId::new("", "Secret", "shop", "key");
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        let shown = |neighbour: &dyn Neighbour, message: &str| {
            let wanted = [&key, &web].into_iter();
            match without_secrets(Standing::Failed(message.to_owned()), neighbour, wanted) {
                Standing::Failed(message) => message,
                other => panic!("{other:?}"),
            }
        };
        let said = "Secret/shop/key dry-run failed: admission webhook denied it: hunter2";
        for (neighbour, said) in
            [(&flux as &dyn Neighbour, said), (&argocd, &format!("[Secret/shop/key] {said}"))]
        {
            let message = shown(neighbour, said);
            assert!(!message.contains("hunter2"), "{message}");
            assert!(neighbour.names(&message, &key) && !neighbour.names(&message, &web), "{message}");
        }
        let said = "Deployment/shop/web dry-run failed: no such image";
        assert_eq!(shown(&flux, said), said);
    }
}
