//! Uncertain removals: while the last good form of an unreadable file is unknown, no object is removed. The
//! copies of current decisions stay, byte for byte.

use std::sync::Arc;

use super::{Previous, put};
use berth_base::model::{Decision, Folders, Key, Map, path};

/// Restores copies that the next state lost.
pub(super) fn carry(decisions: &mut Map<Key, Decision>, previous: Previous<'_>, folders: &mut Folders) {
    for (key, earlier) in previous.decisions {
        for object in &earlier.objects {
            let path: Arc<str> = path::of_object(object).into();
            let mut stays = false;
            for pick in &earlier.picks {
                let there = folders.get(&*pick.cluster).is_some_and(|folder| folder.contains_key(&path));
                let before = previous.folders.get(&*pick.cluster).and_then(|folder| folder.get(&path));
                if let (false, Some(content)) = (there, before) {
                    put(folders, &pick.cluster, &path, *content);
                    stays = true;
                }
            }
            if let (true, Some(decision)) = (stays, decisions.get_mut(key))
                && let Err(place) = decision.objects.binary_search(object)
            {
                decision.objects.insert(place, object.clone());
            }
        }
    }
}
