//! A rollout strategy outside of a system's own objects, in the form of any system.

use super::{kubefleet, ocm};
use berth_base::model::rollout::{Rolling, Strategy};
use berth_base::model::rollout_policy::PolicyStrategy;
use berth_base::yaml::Fields;

pub(crate) use ocm::duration;

const FORMS: [&str; 4] = ["rolloutStrategy", "rollingUpdate", "stages", "stagedStrategy"];

/// Reads a strategy in one of its forms.
pub fn written_strategy(mut fields: Fields<'_>) -> Option<PolicyStrategy> {
    let given: Vec<&str> = FORMS.into_iter().filter(|form| fields.node(form).is_some()).collect();
    let path = fields.path().to_owned();
    match given.as_slice() {
        [_] => {}
        [] => fields.scope().error(fields.at(), format!("{path} needs one of {}", FORMS.join(", "))),
        [_, second, ..] => {
            let message = format!("{path} has {}, but must have one strategy only", given.join(" and "));
            fields.error_at(second, message);
        }
    }
    let waves = fields.fields("rolloutStrategy").map(ocm::rollout_strategy);
    let waves = waves.map(|rollout| PolicyStrategy::Written(Strategy::Progressive(vec![rollout])));
    let rolling = fields.node("rollingUpdate").is_some().then(|| {
        let rolling = kubefleet::rolling_update(&mut fields);
        PolicyStrategy::Written(Strategy::Rolling(Rolling { asked: true, ..rolling }))
    });
    let stages = fields
        .node("stages")
        .is_some()
        .then(|| PolicyStrategy::Written(Strategy::Stages(kubefleet::stages(&mut fields))));
    let at = fields.scope().pos(fields.place_of("stagedStrategy"));
    let staged = fields.str("stagedStrategy");
    let staged = staged.map(|name| PolicyStrategy::Staged { name: name.to_owned(), at });
    fields.finish();
    waves.or(rolling).or(stages).or(staged)
}
