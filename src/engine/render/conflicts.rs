//! Conflicts of several workloads over one object: equal copies are shared, and of different ones one wins.
//!
//! The published copy wins; without one, the lowest kind, namespace and name. The owner of a copy is the
//! lowest of all workloads with an equal one. The other copies fail, with an error that names both workloads.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::Rendering;
use super::claims::Claim;
use super::copies::{Copies, Draft, Fault, Made};
use berth_base::model::{ContentError, ContentId};

/// The copy that one claim has for a cluster.
enum Offer {
    Good(Rc<Draft>),
    /// The last good form, because a new copy cannot or must not be made.
    Kept(ContentId),
}

/// Makes an object that several workloads place.
pub(super) fn make<'c>(
    rendering: &mut Rendering<'_, 'c>,
    claims: &'c [Claim<'_>],
) -> Result<(), ContentError> {
    let fleet = rendering.fleet;
    let mut copies: Vec<Copies<'_>> = claims.iter().map(|claim| Copies::new(fleet, claim)).collect();
    let clusters: BTreeSet<&str> = claims.iter().flat_map(Claim::clusters).collect();
    for cluster in clusters {
        let mut offers: Vec<(&Claim<'_>, Offer)> = Vec::new();
        for (claim, copies) in claims.iter().zip(&mut copies) {
            let Some(pick) = claim.pick(cluster) else { continue };
            match copies.make(pick, &mut rendering.diagnostics) {
                Made::Copy(draft) => offers.push((claim, Offer::Good(draft))),
                Made::Deleted => {}
                Made::Frozen => {
                    offers.extend(
                        rendering.history.last_good(claim, cluster).map(|id| (claim, Offer::Kept(id))),
                    );
                }
                Made::Failed(fault) => {
                    rendering.problems.add(claim, cluster, fault);
                    offers.extend(
                        rendering.history.last_good(claim, cluster).map(|id| (claim, Offer::Kept(id))),
                    );
                }
            }
        }
        // Offers in order of preference; equal ones in the order of their keys.
        let winner = offers.iter().enumerate().min_by_key(|(index, (claim, offer))| {
            let rank = match offer {
                Offer::Good(_) if rendering.history.is_incumbent(claim, cluster) => 0,
                Offer::Kept(_) => 1,
                Offer::Good(_) => 2,
            };
            (rank, *index)
        });
        let Some((_, (winner, offer))) = winner else { continue };
        let equals = |other: &(&Claim<'_>, Offer)| match (offer, &other.1) {
            (Offer::Good(won), Offer::Good(draft)) => {
                winner.path == other.0.path && (Rc::ptr_eq(won, draft) || won.is_as(draft))
            }
            // A failed copy has been reported already.
            (_, Offer::Kept(_)) => true,
            (Offer::Kept(_), Offer::Good(_)) => false,
        };
        for (loser, _) in offers.iter().filter(|other| !equals(other)) {
            rendering.problems.add(loser, cluster, conflict(winner, loser));
        }
        let content = match offer {
            Offer::Kept(id) => *id,
            Offer::Good(won) => {
                // Of equal copies the first is used, whichever was published.
                let first = offers.iter().filter(|other| equals(other)).find_map(|(_, offer)| match offer {
                    Offer::Good(draft) => Some(draft),
                    Offer::Kept(_) => None,
                });
                first.unwrap_or(won).id(&mut rendering.store)?
            }
        };
        rendering.place(winner, cluster, Some(content));
    }
    Ok(())
}

fn conflict(winner: &Claim<'_>, loser: &Claim<'_>) -> Fault {
    let (other, at) = (&winner.workload.key, &winner.template.object.origin);
    let message = if winner.path == loser.path {
        format!("{other} ({at}) places a different {} there, which stays", winner.id)
    } else {
        format!("{other} ({at}) places {} there, whose name differs only by case", winner.id)
    };
    let hint = Some("place the object from only one of them, or make both equal".to_owned());
    Fault { at: loser.template.object.origin.clone(), message, hint, of_override: false }
}
