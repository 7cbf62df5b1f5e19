//! The faults, one after the other.

use super::world::{DAEMONS, MEMBERS, World};
use crate::support::RENDERED;
use crate::support::disk::Room;
use crate::support::remote::{Harm, Server as _};
use crate::support::signals::Signal;

pub struct Fault {
    pub name: &'static str,
    pub begin: fn(&mut World),
    /// Done each second while the fault lasts.
    pub each: fn(&mut World),
    pub end: fn(&mut World),
    /// Whether people push while it lasts.
    pub with_edits: bool,
    /// The alerts that fire at the latest when it has lasted for a while.
    pub alerts: &'static [&'static str],
}

const NONE: Fault =
    Fault { name: "none", begin: nothing, each: nothing, end: nothing, with_edits: true, alerts: &[] };

fn nothing(_: &mut World) {}

const BOTH_FAIL: &[&str] = &["BerthPassesFail daemon-1", "BerthPassesFail daemon-2"];
const BOTH_REFUSE: &[&str] = &["BerthPassIsRefused daemon-1", "BerthPassIsRefused daemon-2"];
const NOBODY_GETS_ANYTHING: &[&str] = &[
    "BerthMemberIsCutOff a",
    "BerthMemberIsCutOff b",
    "BerthMemberIsCutOff c",
    "BerthPassesFail daemon-1",
    "BerthPassesFail daemon-2",
];

pub const ALL: &[Fault] = &[
    Fault { name: "processes stop and start again", each: |world| again(world, Signal::TERM), ..NONE },
    Fault { name: "processes are killed", each: |world| again(world, Signal::KILL), ..NONE },
    Fault {
        name: "one of two daemons is dead",
        begin: |world| world.end("daemon-1", Signal::KILL),
        end: |world| world.start("daemon-1"),
        ..NONE
    },
    Fault {
        name: "both daemons are dead",
        begin: |world| DAEMONS.iter().for_each(|daemon| world.end(daemon, Signal::KILL)),
        end: |world| DAEMONS.iter().for_each(|daemon| world.start(daemon)),
        alerts: &["BerthDaemonIsAway"],
        ..NONE
    },
    Fault {
        name: "one of two daemons is frozen",
        begin: |world| world.signal("daemon-2", Signal::STOP),
        end: |world| world.signal("daemon-2", Signal::CONT),
        ..NONE
    },
    Fault {
        name: "a member is frozen",
        begin: |world| world.signal("b", Signal::STOP),
        end: |world| world.signal("b", Signal::CONT),
        alerts: &["BerthMembersAreSilent daemon-1", "BerthMembersAreSilent daemon-2"],
        ..NONE
    },
    Fault {
        name: "the server refuses what berth pushes",
        begin: |world| refuse(world, "refs/berth/*|refs/heads/berth/*"),
        end: |world| world.fleet.hook("update", "exit 0"),
        alerts: BOTH_FAIL,
        ..NONE
    },
    Fault {
        name: "the server refuses the clusters' refs",
        begin: |world| refuse(world, "refs/berth/clusters/*"),
        end: |world| world.fleet.hook("update", "exit 0"),
        ..NONE
    },
    Fault {
        name: "the servers are slow",
        begin: |world| world.harm(Some(Harm::Slow(20_000))),
        end: |world| world.harm(None),
        ..NONE
    },
    Fault {
        name: "connections are cut anywhere",
        each: |world| {
            let most = usize::try_from(world.random.below(8_000)).expect("a number");
            world.harm(Some(Harm::Cut(most)));
        },
        end: |world| world.harm(None),
        ..NONE
    },
    Fault {
        name: "the servers say nothing",
        begin: |world| world.harm(Some(Harm::Mute)),
        end: |world| world.harm(None),
        alerts: NOBODY_GETS_ANYTHING,
        ..NONE
    },
    Fault {
        name: "the servers' answers are garbled",
        begin: |world| world.harm(Some(Harm::Garbled)),
        end: |world| world.harm(None),
        alerts: BOTH_FAIL,
        ..NONE
    },
    Fault {
        name: "the servers are away",
        begin: |world| {
            world.https.stop();
            world.ssh.stop();
            world.plain.stop();
        },
        end: |world| {
            world.https.start();
            world.ssh.start();
            world.plain.start();
        },
        alerts: NOBODY_GETS_ANYTHING,
        ..NONE
    },
    Fault {
        name: "a server shows an old backup",
        begin: |world| world.plain.move_to(&world.fleet.root().join("backup")),
        end: |world| world.plain.move_to(world.fleet.root()),
        alerts: &["BerthMemberRefusesItsFolder c"],
        ..NONE
    },
    Fault {
        name: "a stranger moves a cluster's ref",
        each: |world| world.forge("refs/berth/clusters/b", &[]),
        alerts: &["BerthMemberRefusesItsFolder b"],
        ..NONE
    },
    Fault {
        name: "the rendered branch is put back",
        begin: |world| world.put_back(RENDERED, 3),
        end: |world| world.restore(RENDERED),
        alerts: BOTH_REFUSE,
        ..NONE
    },
    Fault {
        name: "a stranger adds to the rendered branch",
        begin: |world| {
            world.put_back(RENDERED, 0);
            world.forge(RENDERED, &[RENDERED]);
        },
        end: |world| world.restore(RENDERED),
        alerts: BOTH_REFUSE,
        ..NONE
    },
    Fault {
        name: "the source branch is put back",
        begin: |world| world.put_back("refs/heads/main", 3),
        end: |world| world.restore("refs/heads/main"),
        with_edits: false,
        alerts: BOTH_REFUSE,
        ..NONE
    },
    Fault {
        name: "the disk of a daemon is full",
        begin: |world| fill(world, 0),
        end: |world| clear(world, 0),
        alerts: &["BerthPassesFail daemon-2"],
        ..NONE
    },
    Fault {
        name: "the disk of a member is full",
        begin: |world| fill(world, 1),
        end: |world| clear(world, 1),
        alerts: &["BerthMemberIsCutOff c"],
        ..NONE
    },
    Fault {
        name: "a daemon's working copy is damaged",
        begin: |world| {
            world.end("daemon-1", Signal::KILL);
            world.damage("daemon-1");
            world.start("daemon-1");
        },
        ..NONE
    },
    Fault {
        name: "a member's working copy is damaged",
        begin: |world| {
            world.end("b", Signal::KILL);
            world.damage("b");
            world.start("b");
        },
        ..NONE
    },
    Fault {
        name: "a signing key cannot be read",
        begin: |world| world.break_key("daemon-1"),
        end: |world| world.sign_with("daemon-1", "berth"),
        alerts: &["BerthSettingsCannotBeUsed daemon-1"],
        ..NONE
    },
    Fault {
        name: "the signing keys are rotated",
        begin: |world| {
            world.trust(&["berth", "other"]);
            DAEMONS.iter().for_each(|daemon| world.sign_with(daemon, "other"));
        },
        end: |world| world.trust(&["other"]),
        ..NONE
    },
    Fault {
        name: "a file of the source has an error",
        begin: |world| world.people_write("apps/faulty.yaml", "kind: [\n"),
        end: |world| world.people_remove("apps/faulty.yaml"),
        alerts: &["BerthSourceHasErrors daemon-1", "BerthSourceHasErrors daemon-2"],
        ..NONE
    },
    Fault {
        name: "people remove almost everything",
        begin: World::people_remove_most,
        end: World::people_bring_back,
        ..NONE
    },
    Fault {
        name: "an API server is away",
        begin: |world| world.api.harm(Some(Harm::Cut(0))),
        end: |world| world.api.harm(None),
        alerts: &["BerthMemberDoesNotSync a"],
        ..NONE
    },
];

/// Ends a process by chance, and starts it again.
fn again(world: &mut World, signal: Signal) {
    let all = [DAEMONS.as_slice(), &MEMBERS].concat();
    let name = world.random.pick(&all);
    world.again(name, signal);
}

fn refuse(world: &World, refs: &str) {
    let script = format!("case $1 in {refs}) echo no changes on Fridays >&2; exit 1;; esac");
    world.fleet.hook("update", &script);
}

fn fill(world: &World, disk: usize) {
    if let Some(disk) = world.disks.get(disk) {
        disk.leave(Room::Blocks(0));
    }
}

fn clear(world: &World, disk: usize) {
    if let Some(disk) = world.disks.get(disk) {
        disk.leave(Room::Plenty);
    }
}
