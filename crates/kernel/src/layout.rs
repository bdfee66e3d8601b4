//! A policy as the BPF program takes it.

use astraea_cc::MILLISECOND;
use astraea_policy::fixed::FixedLayer;
use astraea_policy::state::fnv1a;
use astraea_policy::{FixedNetwork, Form, Policy, Rules, Stride};

use crate::Error;
use crate::intf::{self, INTERFACE, LAYERS, UNITS, WEIGHTS, WIDTH};

/// 1 in Q24.
pub const ONE: f64 = (1 << 24) as f64;

fn q24(value: f64) -> i64 {
    (value * ONE).round() as i64
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Base round-trip times for which a policy is asked. Its declared domain is 5 to 300 ms; below a millisecond the
/// period is tens of round trips and the kernel's clock of microseconds is most of the queueing delay.
const RTT: std::ops::RangeInclusive<u64> = MILLISECOND..=1000 * MILLISECOND;

/// Largest rate in packets/s for which a policy is asked: ten times its declared 1 Gbit/s.
const RATE: f64 = 833_333.0;

/// The policy as the program takes it.
///
/// # Errors
/// A network with more layers, or wider ones, than the program has room for.
pub fn policy(policy: &Policy, hash: u64) -> Result<Box<intf::Policy>, Error> {
    let metadata = policy.metadata();
    let mut laid = intf::zeroed::<intf::Policy>();
    let name = metadata.notes.get("name").map_or("unnamed", String::as_str);
    let length = name.floor_char_boundary(laid.name.len() - 1);
    laid.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    laid.hash = hash;
    laid.interface = INTERFACE;
    laid.form = match metadata.form {
        Form::Paper => intf::FORM_PAPER,
        Form::Pure => intf::FORM_PURE,
        Form::Guided => intf::FORM_GUIDED,
    };
    laid.alpha = q24(metadata.alpha);
    laid.period = metadata.period;
    laid.domain = intf::Domain { rtt_min: *RTT.start(), rtt_max: *RTT.end(), rate_max: (RATE * 65536.0) as u64 };
    laid.rules = rules(&Rules::default());
    network(&FixedNetwork::new(policy.network(), metadata.form), &mut laid.network)?;
    Ok(laid)
}

fn stride(s: &Stride) -> intf::Stride {
    intf::Stride { least: s.least, part: q24(s.part), up: q24(s.up) }
}

fn rules(r: &Rules) -> intf::Rules {
    let (losses, crowd, leap, drain, neighbour) = (&r.losses, &r.crowd, &r.leap, &r.drain, &r.neighbour);
    intf::Rules {
        backlog: (r.backlog * f64::from(1 << 20)) as i64,
        per_reference: ((1_u64 << 40) as f64 / Rules::REFERENCE).round() as i64,
        exponent: q24(Rules::EXPONENT),
        resting: q24(Rules::EXPONENT / (1.0 - Rules::EXPONENT)),
        gain: q24(r.gain),
        calm: nanos(r.calm),
        calm_least: q24(r.calm_least),
        up: q24(r.up),
        growth_left: q24(r.growth_left),
        random_loss: q24(r.random_loss),
        down: q24(r.down),
        near_rest: q24(r.near_rest),
        loss: q24(r.loss),
        loss_most: q24(r.loss_most),
        burst: q24(r.burst),
        fair: q24(r.fair),
        level: nanos(r.level),
        hurry: q24(r.hurry),
        hurry_after: q24(r.hurry_after),
        hurry_near: q24(r.hurry_near),
        patience: r.patience,
        early: q24(r.early),
        kept: q24(r.kept),
        modest: (r.modest * f64::from(1 << 20)) as u64,
        newcomer: r.newcomer,
        newcomer_least: q24(r.newcomer_least),
        newcomer_most: q24(r.newcomer_most),
        newcomer_short: q24(r.newcomer_short),
        losses_average: nanos(losses.average),
        losses_burst: q24(losses.burst),
        losses_gain: q24(losses.gain),
        losses_most: q24(losses.most),
        losses_hurried: q24(losses.hurried),
        losses_seen: q24(losses.seen),
        losses_depth: q24(losses.depth),
        losses_settle: losses.settle,
        losses_rest: losses.rest,
        losses_unknown: q24(losses.unknown),
        losses_belief: losses.belief as u64,
        losses_deviations: q24(losses.deviations),
        losses_counts: losses.counts as u64,
        losses_unlike: q24(losses.unlike),
        crowd_average: nanos(crowd.average),
        crowd_seen: q24(crowd.seen),
        crowd_gain: q24(crowd.gain),
        leap_every: leap.every,
        leap_loss: q24(leap.loss),
        leap_high: q24(leap.high),
        leap_dead: q24(leap.dead),
        leap_down: q24(leap.down),
        leap_old: stride(&leap.old),
        leap_youth: leap.youth,
        leap_young: stride(&leap.young),
        drain_rise: nanos(drain.rise),
        drain_rise_share: q24(drain.rise_share),
        drain_average: nanos(drain.average),
        drain_rest: drain.rest,
        drain_memory: drain.memory,
        tick: drain.tick,
        beat: drain.beat,
        echo: drain.echo,
        unseen: drain.unseen,
        drain_length: drain.length,
        drain_depth: q24(drain.depth),
        tick_depth: q24(drain.tick_depth),
        drain_margin: q24(drain.margin),
        drain_watch: drain.watch,
        drain_failures: u64::from(drain.failures),
        doubtful: q24(drain.doubtful),
        doubt: drain.doubt,
        doubt_most: drain.doubt_most,
        doubt_depth: q24(drain.doubt_depth),
        pressure: q24(neighbour.pressure),
        pressed: neighbour.pressed,
        shrunk: q24(neighbour.shrunk_logarithm()),
        pressed_shrunk: neighbour.pressed_shrunk,
        stayed: q24(neighbour.stayed),
        drains: u64::from(neighbour.drains),
        strikes: u64::from(neighbour.strikes),
        former: (neighbour.former * f64::from(1 << 20)) as u64,
        even: q24(neighbour.even),
        regained: q24(neighbour.regained),
        test: neighbour.test,
        first_test: neighbour.first_test,
        test_length: neighbour.test_length,
        empty: q24(neighbour.empty),
        gone: u64::from(neighbour.gone),
        like: q24(neighbour.like),
        neighbour_memory: neighbour.memory,
        immunity: neighbour.immunity,
        lossy: q24(neighbour.lossy),
        per_loss: q24(neighbour.per_loss),
    }
}

fn network(fixed: &FixedNetwork, laid: &mut intf::Network) -> Result<(), Error> {
    let shape = || {
        let outputs = fixed.layers.iter().map(|layer| format!("-{}", layer.units.len()));
        format!("{}{}", fixed.layers[0].inputs, outputs.collect::<String>())
    };
    let too_large = |what: String| Error::TooLarge { shape: shape(), what };
    if fixed.layers.len() > LAYERS {
        return Err(too_large(format!("at most {LAYERS} layers")));
    }
    laid.layers = fixed.layers.len() as u32;
    laid.inputs = fixed.layers[0].inputs as u32;
    laid.wide = u32::from(fixed.wide);
    laid.most = fixed.most;
    laid.input_scale[..fixed.input_scale.len()].copy_from_slice(&fixed.input_scale);
    let (mut weights, mut units) = (0, 0);
    for (layer, place) in fixed.layers.iter().zip(&mut laid.layer) {
        let (inputs, outputs) = (layer.inputs.next_multiple_of(8), layer.units.len().next_multiple_of(8));
        if inputs.max(outputs) > WIDTH {
            return Err(too_large(format!("at most {WIDTH} inputs and outputs of a layer")));
        }
        let numbers = inputs * outputs / if fixed.wide { 1 } else { 2 };
        if weights + numbers > WEIGHTS || units + outputs > UNITS {
            return Err(too_large(format!("at most {WEIGHTS} numbers with weights and {UNITS} units")));
        }
        *place = intf::Layer {
            inputs: inputs as u32,
            outputs: outputs as u32,
            weights: weights as u32,
            units: units as u32,
        };
        pack(layer, inputs, fixed.wide, &mut laid.weight[weights..weights + numbers], &mut laid.unit[units..]);
        weights += numbers;
        units += outputs;
    }
    Ok(())
}

/// Weights as [block of 8 outputs][input][pair of outputs], or of a wide network as [block of 4 outputs][input][output],
/// padded with zeros.
fn pack(layer: &FixedLayer, inputs: usize, wide: bool, weights: &mut [i64], units: &mut [intf::Unit]) {
    let weight = |output: usize, input: usize| -> i64 {
        if input < layer.inputs && output < layer.units.len() {
            i64::from(layer.weights[output * layer.inputs + input])
        } else {
            0
        }
    };
    for (index, place) in weights.iter_mut().enumerate() {
        let (block, rest) = (index / (inputs * 4), index % (inputs * 4));
        let (input, column) = (rest / 4, rest % 4);
        *place = if wide {
            weight(block * 4 + column, input)
        } else {
            let output = block * 8 + column * 2;
            weight(output, input) + (weight(output + 1, input) << 32)
        };
    }
    for (unit, place) in layer.units.iter().zip(units) {
        *place = intf::Unit {
            bias: unit.bias,
            scale: unit.scale,
            shift: unit.shift.cast_signed(),
            low: unit.low,
            high: unit.high,
        };
    }
}

/// Hash of a policy file (FNV-1a, 64 bits), by which `status` tells which one runs.
pub fn hash(bytes: &[u8]) -> u64 {
    fnv1a(bytes)
}

/// The name of a policy.
pub fn name(policy: &intf::Policy) -> String {
    String::from_utf8_lossy(policy.name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// Sizes of a policy's network, hidden layers rounded up to multiples of 8.
pub fn shape(policy: &intf::Policy) -> String {
    let layers = &policy.network.layer[..(policy.network.layers as usize).min(LAYERS)];
    let hidden = layers.iter().take(layers.len().saturating_sub(1)).map(|layer| format!("-{}", layer.outputs));
    format!("{}{}-1", policy.network.inputs, hidden.collect::<String>())
}
