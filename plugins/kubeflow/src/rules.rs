//! The rules in which the frameworks differ by more than data, each in the framework's own module.

use crate::env::Variable;
use crate::family::{Family, Group};
use crate::fate::{Fate, RestartPolicy};
use crate::kind::{Framework, Quorum, ReplicaType};
use crate::valid::Valid;
use crate::{elastic, jax, paddle, pytorch, tf, wait, xgboost};
use troupe_plugin::PodTemplate;

/// Returns the variables of each replica of a group.
pub(crate) fn variables(valid: &Valid<'_>, group: &Group<'_>) -> Vec<Variable> {
    match valid.family.kind.framework {
        Framework::Tf => tf::variables(valid, group),
        Framework::PyTorch => pytorch::variables(valid, group),
        Framework::XgBoost => xgboost::variables(valid, group),
        Framework::Jax => jax::variables(valid, group),
        Framework::Paddle => paddle::variables(valid, group),
    }
}

/// Adds the init container that each replica of a group gets.
pub(crate) fn add_init_container(family: &Family<'_>, group: &Group<'_>, template: &mut PodTemplate<'_>) {
    match family.kind.framework {
        Framework::PyTorch => wait::for_master(family, group, "init-pytorch", template),
        // Better: XGBoost tries again where its tracker refuses a connection, and gives up at once where there is no name.
        Framework::XgBoost => wait::for_master(family, group, "init-xgboost", template),
        Framework::Tf | Framework::Jax | Framework::Paddle => {}
    }
}

/// Returns which workers decide that a job without a type that leads has succeeded.
pub(crate) fn quorum(family: &Family<'_>) -> Quorum {
    match family.kind.framework {
        Framework::Tf => tf::quorum(family),
        Framework::PyTorch => pytorch::quorum(family),
        Framework::XgBoost | Framework::Jax | Framework::Paddle => Quorum::All,
    }
}

/// Returns what becomes of a failed pod of a type with this policy and exit code.
pub(crate) fn fate(family: &Family<'_>, of: &ReplicaType, policy: RestartPolicy, exit_code: Option<i32>) -> Fate {
    match family.kind.framework {
        Framework::Tf => tf::fate(family, of, policy, exit_code),
        Framework::XgBoost => xgboost::fate(policy, exit_code),
        Framework::PyTorch | Framework::Jax | Framework::Paddle => policy.fate(exit_code),
    }
}

/// Returns what the framework will not do with the job as it is: a reason and what to do.
pub(crate) fn warnings(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let mut warnings = elastic::warnings(family);
    warnings.extend(match family.kind.framework {
        Framework::Tf => tf::warnings(family),
        Framework::PyTorch => pytorch::warnings(family),
        Framework::Paddle => paddle::warnings(family),
        Framework::XgBoost | Framework::Jax => vec![],
    });
    warnings
}

/// Returns the fields that are wrong by the framework's own rules, below the spec, and what is wrong with them.
pub(crate) fn errors(family: &Family<'_>) -> Vec<(String, String)> {
    match family.kind.framework {
        Framework::Tf => tf::errors(family),
        Framework::PyTorch => pytorch::errors(family),
        Framework::XgBoost => xgboost::errors(family),
        Framework::Paddle => paddle::errors(family),
        Framework::Jax => vec![],
    }
}
