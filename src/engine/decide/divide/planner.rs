//! Divides replicas among clusters by floors, ceilings, weights and capacities: a pure function.
//!
//! Floors come first, then current replicas, then rounds of shares by weight, each rounded up, so that the
//! rounding falls on the last in the order. The order is weight descending, then a hash that differs between
//! workloads, so that the rounding falls on different clusters. The result shows the parts of every number.

use std::cmp::Reverse;

use berth_base::model::placement::Share;

/// A number to divide, and the rules for it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub total: i32,
    /// Divides from scratch instead of keeping current replicas.
    pub rebalance: bool,
    /// Part of the hash that breaks ties.
    pub key: &'a str,
}

/// A cluster that takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contender<'a> {
    pub cluster: &'a str,
    /// `None` counts as 0.
    pub share: Option<Share>,
    /// The replicas that it has now.
    pub current: Option<i64>,
    /// The number that fits; `None` for any number.
    pub capacity: Option<i64>,
}

/// The replicas of one cluster, and the steps that led to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Portion {
    /// The cluster's place in the order, from 1; 0 without a share.
    pub place: usize,
    pub hash: u32,
    /// Given as its floor.
    pub floor: i64,
    /// Current replicas that it keeps beyond the floor.
    pub kept: i64,
    /// Given by weight, beyond floor and kept. Negative where a ceiling reduced these.
    pub shared: i64,
    pub at_ceiling: bool,
    pub at_capacity: bool,
    /// Required by the floor although they do not fit.
    pub overflow: i64,
}

impl Portion {
    pub fn planned(&self) -> i64 {
        self.floor.saturating_add(self.kept).saturating_add(self.shared)
    }

    /// Returns the number to write: planned and overflow.
    pub fn replicas(&self) -> i64 {
        self.planned().saturating_add(self.overflow)
    }
}

/// The most replicas that a cluster can have; larger inputs count as this number.
const MOST: i64 = i32::MAX as i64;

/// A cluster during the division. Sums stay far from the limits of `i128`, whatever the file contains.
struct Player {
    index: usize,
    weight: i128,
    floor: i128,
    ceiling: Option<i128>,
    capacity: Option<i128>,
    current: Option<i128>,
    given: i128,
    /// Kept replicas that do not count as a share yet.
    credit: i128,
    out: bool,
}

/// Divides, and returns one portion for each contender, in their order.
pub fn plan(request: Request<'_>, contenders: &[Contender<'_>]) -> Vec<Portion> {
    divide(request, contenders, skip_equal_rounds)
}

/// Divides like [`plan`], one round after the other.
#[cfg(test)]
pub(super) fn plan_round_by_round(request: Request<'_>, contenders: &[Contender<'_>]) -> Vec<Portion> {
    divide(request, contenders, |_, _| {})
}

/// Divides, and calls `repeat` after each round that changed only credits.
fn divide(
    request: Request<'_>,
    contenders: &[Contender<'_>],
    repeat: impl Fn(&mut [Player], i128),
) -> Vec<Portion> {
    let mut portions = vec![Portion::default(); contenders.len()];
    let mut players = players(request.key, contenders, &mut portions);
    let mut remaining = i128::from(request.total);
    give_floors(&mut players, &mut portions, &mut remaining);
    if !request.rebalance {
        keep_current(&mut players, &mut portions, &mut remaining);
    }
    let started: Vec<i128> = players.iter().map(|player| player.given).collect();
    let mut overflow = vec![0; players.len()];
    while remaining > 0 {
        match round(&mut players, &mut portions, &mut overflow, &mut remaining) {
            Round::Gave => {}
            Round::TookCredits => repeat(&mut players, remaining),
            Round::Idle => break,
        }
    }
    for ((player, started), overflow) in players.iter().zip(started).zip(overflow) {
        let portion = &mut portions[player.index];
        portion.shared = narrow(player.given - started);
        let asked = if request.rebalance { overflow } else { overflow.min(remaining).max(0) };
        portion.overflow = narrow(asked);
    }
    portions
}

/// Returns the clusters with a share, in the order in which they get replicas.
fn players(key: &str, contenders: &[Contender<'_>], portions: &mut [Portion]) -> Vec<Player> {
    let clamped = |number: i64| i128::from(number.clamp(-MOST, MOST));
    let player = |(index, contender): (usize, &Contender<'_>)| {
        let share = contender.share?;
        Some(Player {
            index,
            weight: i128::from(share.weight),
            floor: clamped(share.floor),
            ceiling: share.ceiling.map(clamped),
            capacity: contender.capacity.map(clamped),
            current: contender.current.map(clamped),
            given: 0,
            credit: 0,
            out: false,
        })
    };
    let mut players: Vec<Player> = contenders.iter().enumerate().filter_map(player).collect();
    for player in &players {
        portions[player.index].hash = hash(contenders[player.index].cluster, key);
    }
    players.sort_by(|a, b| {
        let of = |player: &Player| {
            rank(player.weight, portions[player.index].hash, contenders[player.index].cluster)
        };
        of(a).cmp(&of(b))
    });
    for (place, player) in players.iter().enumerate() {
        portions[player.index].place = place + 1;
    }
    players
}

/// Gives floors. A shortage falls on the last clusters; ceilings do not count.
fn give_floors(players: &mut [Player], portions: &mut [Portion], remaining: &mut i128) {
    for player in players {
        player.given = within(player.floor.min(*remaining), player.capacity);
        *remaining -= player.given;
        portions[player.index].floor = narrow(player.given);
    }
}

fn keep_current(players: &mut [Player], portions: &mut [Portion], remaining: &mut i128) {
    for player in players {
        let Some(current) = player.current.filter(|current| *current > player.given) else { continue };
        let target = within(within(current, player.ceiling), player.capacity);
        let extra = (target - player.given).min(*remaining).max(0);
        *remaining -= extra;
        player.given += extra;
        player.credit = extra;
        portions[player.index].kept = narrow(extra);
    }
}

/// The effect of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// A cluster got or lost replicas, or left the division.
    Gave,
    /// Kept replicas were counted as shares, and nothing else changed.
    TookCredits,
    /// The next round would be equal: no cluster gets more.
    Idle,
}

/// Divides the rest by weight, in one round.
fn round(
    players: &mut [Player],
    portions: &mut [Portion],
    overflow: &mut [i128],
    remaining: &mut i128,
) -> Round {
    let at_start = *remaining;
    let weights = weights(players);
    if weights <= 0 {
        return Round::Idle;
    }
    let (mut changed, mut is_quiet) = (false, true);
    for (player, overflow) in players.iter_mut().zip(overflow) {
        if player.out {
            continue;
        }
        let share = share(at_start, player.weight, weights).min(*remaining);
        let used = share.min(player.credit);
        player.credit -= used;
        changed |= used > 0;
        let mut total = player.given + share - used;
        if let Some(ceiling) = player.ceiling.filter(|ceiling| total > *ceiling) {
            total = ceiling;
            player.out = true;
            portions[player.index].at_ceiling = true;
        }
        if let Some(capacity) = player.capacity.filter(|capacity| total > *capacity) {
            *overflow = total - capacity;
            total = capacity;
            player.out = true;
            portions[player.index].at_capacity = true;
        }
        *remaining -= total - player.given;
        changed |= total > player.given;
        is_quiet &= total == player.given && !player.out;
        player.given = total;
    }
    match (changed, is_quiet) {
        (true, true) => Round::TookCredits,
        (true, false) => Round::Gave,
        (false, _) => Round::Idle,
    }
}

/// Skips all rounds that equal the last one, if that took its shares from credits alone. The number of equal
/// rounds is the number of shares left in the smallest credit: as long as no credit ends, a round's other
/// inputs stay the same.
fn skip_equal_rounds(players: &mut [Player], remaining: i128) {
    let weights = weights(players);
    let share = |player: &Player| share(remaining, player.weight, weights).min(remaining);
    let active = || players.iter().filter(|player| !player.out);
    let rounds = active().map(|player| (player.credit, share(player))).filter(|(_, share)| *share > 0);
    let Some(rounds) = rounds.map(|(credit, share)| credit / share).min() else { return };
    for player in players.iter_mut().filter(|player| !player.out) {
        player.credit -= rounds.saturating_mul(share(player)).min(player.credit);
    }
}

fn weights(players: &[Player]) -> i128 {
    players.iter().filter(|player| !player.out).map(|player| player.weight).sum()
}

/// Returns `left * weight / weights`, rounded up.
fn share(left: i128, weight: i128, weights: i128) -> i128 {
    // Division of small numbers is many times faster.
    let small = |number: i128| i64::try_from(number).ok();
    if let (Some(left), Some(weight), Some(weights)) = (small(left), small(weight), small(weights))
        && let Some(sum) = left.checked_mul(weight).and_then(|product| product.checked_add(weights - 1))
    {
        return i128::from(sum / weights);
    }
    left.saturating_mul(weight).saturating_add(weights - 1) / weights
}

fn within(number: i128, limit: Option<i128>) -> i128 {
    limit.map_or(number, |limit| number.min(limit))
}

fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the 32-bit FNV-1 hash (multiply, then xor) of the cluster's name, directly followed by the key.
pub fn hash(cluster: &str, key: &str) -> u32 {
    let step = |hash: u32, byte: u8| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte);
    cluster.bytes().chain(key.bytes()).fold(0x811c_9dc5, step)
}

/// Returns the sort key, ascending. Names decide only between equal hashes.
pub(super) fn rank(weight: i128, hash: u32, cluster: &str) -> (Reverse<i128>, u32, &str) {
    (Reverse(weight), hash, cluster)
}
