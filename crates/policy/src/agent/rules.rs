//! The numbers of the law and of the rules.

use astraea_cc::{MILLISECOND, Nanos, SECOND};

/// The law and the rules of the guided form. Backlogs and windows are in packets.
///
/// The defaults were chosen by hand on the groups of `bench/policies.py` other than the test grid. The card of a policy says
/// which ones its network was trained with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Own packets in the queue that the law wants at [`Rules::REFERENCE`] packets/s; it grows with the power
    /// [`Rules::EXPONENT`] of the rate.
    pub backlog: f64,
    /// Gain of the law: relative step per round trip for an error of 1.
    pub gain: f64,
    /// Queueing delay in s that a flow must want to answer with the whole gain. Who wants less answers less, in
    /// proportion: a step moves the queue by its share of a round trip, which overshoots a short delay again and again.
    /// Who loses packets answers in full: in a buffer of a few of them nothing but losses brings flows together.
    pub calm: f64,
    /// Share of the gain that is left at least where a flow wants a shorter delay than `calm`.
    pub calm_least: f64,
    /// Largest relative step up, per round trip.
    pub up: f64,
    /// Share of the law's step up that the network leaves of it at least where few packets are lost.
    pub growth_left: f64,
    /// Share of lost packets up to which `growth_left` holds. More is no accident.
    pub random_loss: f64,
    /// Largest relative step down, per round trip.
    pub down: f64,
    /// Relative step down of the law per round trip from which on what the network takes counts in full. Nearer to the
    /// law's rest it counts in proportion, unless packets are lost: a lone flow's queue would swing more, and it is by
    /// this queue that newcomers find their share.
    pub near_rest: f64,
    /// Error added per unit of loss share: a share of 0.01 adds 0.3.
    pub loss: f64,
    /// Largest error that losses add. Beyond it everyone reacts alike, however uneven a full queue drops.
    pub loss_most: f64,
    /// Share of a burst's losses, as a logarithm, that the window follows per round trip.
    pub burst: f64,
    /// Relative step per round trip of a flow whose own backlog is e times from the one that the law wants at the queue's
    /// level: that is so at e^(1 / (1 - EXPONENT)) times the rate at which it would rest.
    pub fair: f64,
    /// Time constant in s of the queue's level, the same for all flows.
    pub level: f64,
    /// Largest relative step per round trip while a path keeps showing no queue at all.
    pub hurry: f64,
    /// Round trips without a queue after which such steps begin.
    pub hurry_after: f64,
    /// How much larger than `up` such a step is at most, per round trip, where the window is e times the one at which
    /// such steps last ended with losses, or an e-th of it. Nearer it is less, in proportion to the logarithm.
    pub hurry_near: f64,
    /// Thresholds of RFC 9406 by which round trips must exceed the smallest to end slow start, unless `early` is less.
    pub patience: u64,
    /// Queueing delay that is enough to end slow start, in multiples of what the law would want at this rate (at least
    /// 4 ms).
    pub early: f64,
    /// Share of the window without its queue that is kept when a queue ends slow start: the window doubled in the last
    /// round trip, and others yield.
    pub kept: f64,
    /// Window in packets up to which the queue that a newcomer finds is the others', and which the pace keeps to rather than
    /// the number of packets in flight.
    pub modest: f64,
    /// How long after slow start (and five round trips) a flow is a newcomer, in ns.
    pub newcomer: Nanos,
    /// Share of its window that a newcomer keeps at least when it is lowered to what the others have.
    pub newcomer_least: f64,
    /// Multiple of its window that a newcomer gets at most when it is raised to what the others have.
    pub newcomer_most: f64,
    /// Multiple of the queueing delay that the law wants below which the delay before the drain must have been for a
    /// newcomer's window to be raised.
    pub newcomer_short: f64,
    /// What is lost beyond what the path loses anyway, and how that is found.
    pub losses: LossRules,
    /// By how much less a flow wants that is one of a crowd.
    pub crowd: CrowdRules,
    /// When and how far a flow leaps to the fair rate.
    pub leap: LeapRules,
    /// When and how the queue is drained.
    pub drain: DrainRules,
    /// What is taken for a neighbour of another kind, and how it is met.
    pub neighbour: NeighbourRules,
}

/// What is lost because flows send too much, told from what the path loses whatever is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossRules {
    /// Time constant in s of the average share of lost packets.
    pub average: f64,
    /// Share of lost packets at one moment that counts in that average at most: a burst is answered at once, and is over.
    pub burst: f64,
    /// Error added per unit of the average share of lost packets beyond the base loss, at the reference rate. It grows
    /// with the power 3/2 of the rate, so that who has more of a link yields although fewer of its packets are lost.
    pub gain: f64,
    /// Largest error that losses beyond the base loss add. At this one no flow grows.
    pub most: f64,
    /// Error that losses beyond the base loss add above which no path is filled faster and faster.
    pub hurried: f64,
    /// Average share of lost packets from which on flows without a queue hold back at [`DrainRules::tick`].
    pub seen: f64,
    /// Share by which they lower the window, beside the share of packets that they lose.
    pub depth: f64,
    /// How long they hold back, in ns: this and a round trip, or twice this if that is longer. The first part passes
    /// until all do.
    pub settle: Nanos,
    /// Round trips between two such times at least, or else eight strikes of the clock.
    pub rest: u64,
    /// Share of lost packets that is taken for the base loss until it has been counted (`seen` at least, then).
    pub unknown: f64,
    /// Packets that this first guess is worth in each count.
    pub belief: f64,
    /// Standard deviations by which a count allows for more loss than it has found, and less is certain.
    pub deviations: f64,
    /// Counts after which one is worth a third (1/e, about) of the last in what is certain.
    pub counts: f64,
    /// What is taken from that for each unit by which the share lost between counts differs from theirs.
    pub unlike: f64,
}

/// By how much less is wanted where the backlogs that all want do not fit into the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrowdRules {
    /// Time constant in s of the average share of lost packets.
    pub average: f64,
    /// That share beyond which there is a crowd, unless it is certain that the path loses more by itself: the most that one
    /// of the domain loses at random.
    pub seen: f64,
    /// By what the wanted backlog is divided, beside 1, per unit of what is lost beyond that, at the reference rate and
    /// above. It grows with the root of the rate below, so that who has more yields more. So is the error that losses of a
    /// moment add: what they say has been said.
    pub gain: f64,
    /// That share from which on a flow loses packets all the time.
    pub steady: f64,
}

/// How a flow leaps to the window that the average queue says is everybody's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeapRules {
    /// Everybody leaps at multiples of this time of day, in ns.
    pub every: Nanos,
    /// Largest share of lost packets with which a flow leaps.
    pub loss: f64,
    /// Multiple of the queueing delay that the law wants at the flow's rate up to which the average delay must be for a
    /// leap.
    pub high: f64,
    /// Distance of the window from that one, as a logarithm, that is left alone.
    pub dead: f64,
    /// Largest part of the distance, as a logarithm, that is leapt over downwards.
    pub down: f64,
    /// How soon and how far a flow leaps that is not young.
    pub old: Stride,
    /// How long after slow start a flow is young, in ns.
    pub youth: Nanos,
    /// How soon and how far a young flow leaps, to windows above [`Rules::modest`].
    pub young: Stride,
}

/// How soon and how far a flow leaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stride {
    /// For how long, in ns (and eight round trips), it must have followed the law since the last leap or drain.
    pub least: Nanos,
    /// Part of what is beyond the distance left alone that is leapt over.
    pub part: f64,
    /// Largest leap upwards, as a logarithm.
    pub up: f64,
}

/// When and how the queue is drained to see the base round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrainRules {
    /// Rise of the queueing delay over its average that asks for a drain, in s, unless `rise_share` is more.
    pub rise: f64,
    /// The same as a share of the base round-trip time; the larger of both counts.
    pub rise_share: f64,
    /// Time constant of that average in s.
    pub average: f64,
    /// Shortest time in ns between drains that a rise asks for; at least four round trips.
    pub rest: Nanos,
    /// Time in ns for which the base round-trip time must not have been seen for a flow to look for it.
    pub memory: Nanos,
    /// Everybody looks for the base round-trip time at multiples of this time of day, in ns (a fraction of an hour).
    pub tick: Nanos,
    /// Those who have seen the queue rise as above since it was last drained look for it at multiples of this time of
    /// day, in ns.
    pub beat: Nanos,
    /// A rise of the queue within this time in ns (and two round trips) of a drain is no reason for that: it comes back
    /// then.
    pub echo: Nanos,
    /// At neither time does a flow look for the base round-trip time that has seen it within this time, in ns.
    pub unseen: Nanos,
    /// Shortest drain in ns; at least a round trip.
    pub length: Nanos,
    /// Share of the bandwidth-delay product, less the margin, that stays in flight during a drain.
    pub depth: f64,
    /// The same share when everybody drains.
    pub tick_depth: f64,
    /// Margin, as a share of the queueing delay: how far the known base may be above the true one.
    pub margin: f64,
    /// How long a drain that did not show the base is watched on, in ns.
    pub watch: Nanos,
    /// Drains in a row that the clock asked for and that showed a longer base, until it is believed.
    pub failures: u32,
    /// Share of packets lost from which on a path without a queue is doubted.
    pub doubtful: f64,
    /// How long it is doubted, in ns (at least four round trips), before a drain is asked for. Doubles with each drain
    /// that shows nothing new.
    pub doubt: Nanos,
    /// Longest such time in ns.
    pub doubt_most: Nanos,
    /// Share of the window that stays in flight during such a drain.
    pub doubt_depth: f64,
}

/// What is taken for a neighbour that fills the queue whatever a flow does, and how it is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighbourRules {
    /// Error of the law, with the queue that is there, below which a flow is under pressure.
    pub pressure: f64,
    /// Time of pressure in ns (at least eight round trips), while the queue does not fall, that is a sign of a
    /// neighbour.
    pub pressed: Nanos,
    /// Factor by which the window has shrunk for a queue that stayed, so that a drain that fails is no accident.
    pub shrunk: f64,
    /// Time of pressure in ns (at least three round trips) that is enough once the window has shrunk by that factor.
    pub pressed_shrunk: Nanos,
    /// Share of the queue that a drain must leave to have failed because of a neighbour.
    pub stayed: f64,
    /// Number of such drains, with none in between that emptied the queue, that makes a neighbour of it.
    pub drains: u32,
    /// Number of drains by the time of day, one after the other, that makes a neighbour of it if all have left that share:
    /// flows of the same kind drain then as well. For flows that had a window of `former` packets at least when the queue
    /// was last nearly empty, and have less than it by the factor `shrunk`.
    pub strikes: u32,
    /// See [`strikes`](Self::strikes). Among many flows of the same kind, with round trips that differ by factors, drains do
    /// not coincide, and windows are small.
    pub former: f64,
    /// Share of the queue between beats that it must have at them, and the other way round, for such drains to count: it
    /// knows no time of day.
    pub even: f64,
    /// Share of the window before all that which a competition begins with.
    pub regained: f64,
    /// Time in ns between tests whether the neighbour is still there; at least twelve round trips.
    pub test: Nanos,
    /// Time in ns to the first of them; at least six round trips.
    pub first_test: Nanos,
    /// Shortest test in ns, at least a round trip: long enough for those of flows that compete with their like to
    /// overlap.
    pub test_length: Nanos,
    /// Share of the queue's peak below which a test finds nobody, as it does below what the law itself would leave.
    pub empty: f64,
    /// Tests in a row that find nobody until a neighbour is gone that one has found: its queue is short for a moment after
    /// it has yielded to a loss.
    pub gone: u32,
    /// Share of the queue between beats below which it must be at them, over the time between two ticks, to be of flows that
    /// drain then: of its like. Beside CUBIC and BBR it is 1 in the middle and was .79 at least (docs/policies.md).
    pub like: f64,
    /// How long a competition that ended is remembered, in ns.
    pub memory: Nanos,
    /// How long no suspicion is taken up after one that proved wrong, in ns; doubles each time.
    pub immunity: Nanos,
    /// The window's square over the packets between losses from which neighbours do not yield to loss. Reno among its like
    /// comes to 2.7 just before a loss, CUBIC to 2.1 for 50 and 2.4 for 250 packets at round trips of 50 ms.
    pub lossy: f64,
    /// Packets by which the window shrinks for each lost one beside such neighbours; it grows by one a round trip.
    pub per_loss: f64,
}

impl Rules {
    /// Rate in packets/s at which `backlog` holds (33 Mbit/s).
    pub const REFERENCE: f64 = 2777.0;

    /// Queueing delays in s below this are noise: they do not tell the rate at which flows rest.
    pub(super) const SHORTEST_QUEUE: f64 = 5e-4;

    /// Power of the rate by which the wanted backlog grows. The higher, the shorter the queue of many slow flows; the
    /// lower, the less a mistaken base round-trip time matters and the farther a flow is off its balance at the wrong rate.
    pub const EXPONENT: f64 = 0.375;

    /// Own packets in the queue that the law wants at a rate in packets/s.
    pub fn wanted(&self, rate: f64) -> f64 {
        // Three roots for the three eighths of `EXPONENT`: cheaper than a power, and asked several times a decision.
        let fourth = (rate / Self::REFERENCE).sqrt().sqrt();
        (self.backlog * fourth * fourth.sqrt()).max(1e-3)
    }

    /// The step of law and network together at a share of lost packets, as a relative change of the window per round trip.
    ///
    /// The network may slow growth down, but not end it where the law asks for more: a flow that it held back for its
    /// rate and its random losses would leave the path empty. Where nothing is lost, what it takes grows from nothing with
    /// the law's step down: the step has no jump where the law rests.
    pub fn step(&self, law: f64, network: f64, loss: f64) -> f64 {
        if law > 0.0 {
            let sum = law + network;
            return if loss <= self.random_loss { sum.max(self.growth_left * law) } else { sum };
        }
        let fades = network < 0.0 && loss == 0.0;
        law + if fades { network * (-law / self.near_rest).min(1.0) } else { network }
    }

    /// Gain of the law at a rate in packets/s and a share of lost packets. It contains no round-trip time: flows that share a
    /// queue still agree.
    pub fn gain(&self, rate: f64, loss: f64) -> f64 {
        if loss > 0.0 {
            return self.gain;
        }
        self.gain * (self.wanted_delay(rate) / self.calm).clamp(self.calm_least, 1.0)
    }

    /// Queueing delay in s at which flows of a rate in packets/s (1 at least) have what the law wants.
    pub fn wanted_delay(&self, rate: f64) -> f64 {
        let rate = rate.max(1.0);
        self.wanted(rate) / rate
    }

    /// The window in packets with which the law rests at a queueing delay over a base round-trip time, both in s.
    pub fn resting_window(&self, base: f64, delay: f64) -> f64 {
        self.resting_rate(delay) * (base + delay)
    }

    /// Rate in packets/s at which flows have what the law wants at a queueing delay in s: the inverse of
    /// [`wanted_delay`](Self::wanted_delay).
    pub fn resting_rate(&self, delay: f64) -> f64 {
        let relative = self.backlog / (delay * Self::REFERENCE);
        Self::REFERENCE * libm::pow(relative, 1.0 / (1.0 - Self::EXPONENT))
    }
}

impl NeighbourRules {
    /// [`shrunk`](Self::shrunk) as a logarithm, as the window that was given up is summed.
    pub fn shrunk_logarithm(&self) -> f64 {
        libm::log(self.shrunk)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            backlog: 10.0,
            gain: 0.1,
            calm: 0.0032,
            calm_least: 0.5,
            up: 0.025,
            growth_left: 0.25,
            random_loss: 0.02,
            down: 0.1,
            near_rest: 0.025,
            loss: 30.0,
            loss_most: 0.6,
            burst: 0.5,
            fair: 0.06,
            level: 0.25,
            hurry: 0.5,
            hurry_after: 2.0,
            hurry_near: 0.25,
            patience: 2,
            early: 3.5,
            kept: 0.75,
            modest: 40.0,
            newcomer: 2 * SECOND,
            newcomer_least: 0.1,
            newcomer_most: 3.0,
            newcomer_short: 3.0,
            losses: LossRules {
                average: 3.0,
                burst: 0.05,
                gain: 30.0,
                most: 1.0,
                hurried: 0.5,
                seen: 0.002,
                depth: 0.05,
                settle: 200 * MILLISECOND,
                rest: 20,
                unknown: 0.005,
                belief: 50.0,
                deviations: 2.0,
                counts: 5.0,
                unlike: 2.0,
            },
            crowd: CrowdRules { average: 10.0, seen: 0.02, gain: 250.0, steady: 0.005 },
            leap: LeapRules {
                every: SECOND,
                loss: 0.002,
                high: 2.0,
                dead: 0.3,
                down: 0.7,
                old: Stride { least: SECOND, part: 0.5, up: 0.2 },
                youth: 5 * SECOND,
                young: Stride { least: SECOND / 2, part: 0.75, up: 0.7 },
            },
            drain: DrainRules {
                rise: 0.003,
                rise_share: 0.15,
                average: 0.5,
                rest: 3 * SECOND / 2,
                memory: 5 * SECOND,
                tick: 5 * SECOND,
                beat: SECOND / 2,
                echo: 100 * MILLISECOND,
                unseen: 400 * MILLISECOND,
                length: 30 * MILLISECOND,
                depth: 0.98,
                tick_depth: 1.02,
                margin: 0.25,
                watch: 120 * MILLISECOND,
                failures: 3,
                doubtful: 0.003,
                doubt: SECOND,
                doubt_most: 60 * SECOND,
                doubt_depth: 0.5,
            },
            neighbour: NeighbourRules {
                pressure: -1.0,
                pressed: 5 * SECOND / 2,
                shrunk: 3.0,
                pressed_shrunk: 290 * MILLISECOND,
                stayed: 0.8,
                drains: 2,
                strikes: 2,
                former: 30.0,
                even: 0.9,
                regained: 0.6,
                test: 5 * SECOND,
                first_test: 700 * MILLISECOND,
                test_length: 300 * MILLISECOND,
                empty: 0.15,
                gone: 2,
                like: 0.8,
                memory: 12 * SECOND,
                immunity: 10 * SECOND,
                lossy: 4.0,
                per_loss: 0.25,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_at_which_a_flow_rests_is_the_inverse_of_the_delay_that_it_wants() {
        let rules = Rules::default();
        // At 256 times the rate 8 times the backlog.
        assert!((rules.wanted(256.0 * Rules::REFERENCE) - 80.0).abs() < 1e-12);
        for rate in [1.0, 150.0, Rules::REFERENCE, 80_000.0] {
            let power = rules.backlog * (rate / Rules::REFERENCE).powf(Rules::EXPONENT);
            assert!((rules.wanted(rate) / power - 1.0).abs() < 1e-12);
            let back = rules.resting_rate(rules.wanted_delay(rate));
            assert!((back / rate - 1.0).abs() < 1e-12, "{back} is not {rate}");
        }
    }

    #[test]
    fn who_wants_a_short_queue_and_loses_nothing_answers_less() {
        let rules = Rules::default();
        // The reference rate wants 3.6 ms; 2^(8/5) times that half of it, 1.8 ms.
        assert_eq!(rules.gain(Rules::REFERENCE, 0.0), 0.1);
        let twice = rules.gain(2.0_f64.powf(1.6) * Rules::REFERENCE, 0.0);
        assert!((twice - 0.1 * 0.5 * 10.0 / (0.0032 * Rules::REFERENCE)).abs() < 1e-12, "{twice}");
        assert_eq!(rules.gain(10.0 * Rules::REFERENCE, 0.0), 0.05);
        assert_eq!(rules.gain(10.0 * Rules::REFERENCE, 0.001), 0.1, "a loss is answered in full");
    }

    #[test]
    fn the_network_slows_growth_down_and_does_not_end_it() {
        let step = |law, network| Rules::default().step(law, network, 0.02);
        assert_eq!([step(0.02, 0.01), step(0.02, -0.01), step(0.02, -0.015)], [0.03, 0.01, 0.02 - 0.015]);
        assert_eq!([step(0.02, -0.04), step(0.0, -0.04), step(-0.02, 0.04)], [0.005, -0.04, 0.02]);
        assert_eq!(Rules::default().step(0.02, -0.04, 0.021), -0.02, "many are lost");
    }

    #[test]
    fn what_the_network_takes_fades_near_the_law_s_rest_unless_packets_are_lost() {
        let step = |law, loss| Rules::default().step(law, -0.04, loss);
        assert_eq!([step(-0.05, 0.0), step(-0.025, 0.0), step(0.0, 0.0)], [-0.05 - 0.04, -0.025 - 0.04, 0.0]);
        assert!((step(-0.0125, 0.0) + 0.0325).abs() < 1e-12, "half of it");
        assert_eq!(step(-0.0125, 0.001), -0.0125 - 0.04, "in full with any loss");
        assert_eq!(Rules::default().step(-0.0125, 0.04, 0.0), 0.04 - 0.0125, "what it adds is never less");
    }

    #[test]
    fn more_of_the_law_or_of_the_network_never_asks_for_less_nor_more_loss_for_more() {
        let rules = Rules::default();
        let at = |index: i32| f64::from(index) / 1000.0;
        for (law, network) in (-100..100).flat_map(|law| (-40..40).map(move |network| (law, network))) {
            let [clean, lossy, full] = [0.0, 0.02, 0.021].map(|loss| {
                let here = rules.step(at(law), at(network), loss);
                assert!(rules.step(at(law + 1), at(network), loss) >= here, "{law} {network} {loss}");
                assert!(rules.step(at(law), at(network + 1), loss) >= here, "{law} {network} {loss}");
                here
            });
            assert!(clean >= lossy && lossy >= full, "{law} {network}");
        }
    }
}
