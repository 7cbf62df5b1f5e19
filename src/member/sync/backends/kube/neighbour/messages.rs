//! Removes secrets from the messages of other programs.
//!
//! Such a program quotes servers and webhooks, which may quote an object. So a message that names Secrets is never
//! shown.

use super::standing::{Neighbour, Standing};
use berth_base::model::ObjectId;

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
