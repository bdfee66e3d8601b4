//! Controllers against closed formulas, on the round-based path.

mod rounds;

use astraea_cc::{AnyController, Controller, Cubic, CubicConfig, MSS, NewReno, SECOND};
use rounds::{Event, Path, Rounds, ms};

fn cubic(hystart: bool) -> AnyController {
    AnyController::Cubic(Cubic::new(CubicConfig { hystart, ..CubicConfig::RFC_9438 }, MSS))
}

fn newreno() -> AnyController {
    AnyController::NewReno(NewReno::new(MSS))
}

/// Drop-tail link of P = 40 packets and a buffer of B = 20: trough (P + B)/2, peak P + B, and one packet per round
/// between them. One more round overflows, one repairs it, and half segments at the trough can cost another two.
#[test]
fn newreno_draws_the_sawtooth() {
    let mut path = Rounds::new(newreno(), Path { rtt: ms(40), bdp: 40, buffer: 20 });
    let rounds: Vec<_> = (0..300).map(|_| path.play(None)).collect();
    let losses: Vec<_> = (50..300).filter(|&round| rounds[round].lost()).collect();
    assert!(losses.len() >= 7, "{losses:?}");
    for loss in losses.windows(2) {
        let (peak, trough) = (rounds[loss[0]].window, rounds[loss[0] + 1].window);
        assert!((61.0..62.0).contains(&peak), "{peak}");
        assert!((30.0..=31.0).contains(&trough), "{trough}");
        let period = loss[1] - loss[0];
        assert!((30 + 2..=30 + 4).contains(&period), "{period}");
    }
}

/// Seconds from the end of recovery after a loss at `packets` until the window is back: the middle of the times at
/// which it is a tenth of a packet below and above, since the cubic is flat there.
fn time_to_recover(packets: u64, rtt_ms: u64) -> f64 {
    let mut path = Rounds::new(cubic(false), Path::unlimited(ms(rtt_ms)));
    path.grow(packets - path.controller.cwnd() / u64::from(MSS));
    path.lose();
    let _recovery = path.play(None);
    let first = path.play(None);
    let mut seconds_to = |window: f64| loop {
        let round = path.play(None);
        if round.window >= window {
            break (round.start - first.start) as f64 / SECOND as f64;
        }
    };
    f64::midpoint(seconds_to(packets as f64 - 0.1), seconds_to(packets as f64 + 0.1))
}

/// min(K, (1 - beta) W / alpha round trips) with K = cbrt((1 - beta) W / C) and alpha = 0.9 / 1.7.
#[test]
fn cubic_is_back_after_a_loss_when_the_formula_says() {
    for (packets, rtt, expected) in [(100, 0.1, 4.217), (1000, 0.1, 9.086), (100, 0.01, 0.567), (20, 0.1, 1.133)] {
        let seconds = time_to_recover(packets, (rtt * 1e3) as u64);
        // Two round trips: for the growth that lags one behind, and for looking once a round.
        assert!((seconds - expected).abs() <= 2.0 * rtt, "{packets} packets at {rtt} s: {seconds} s, not {expected} s");
    }
}

/// Mean window in packets when one packet in `1 / p` is lost, evenly spaced.
fn mean_window(controller: AnyController, rtt_ms: u64, p: f64) -> f64 {
    let mut path = Rounds::new(controller, Path::unlimited(ms(rtt_ms)));
    // A first loss ends slow start near the equilibrium.
    path.play(Some(Event::Loss));
    let (mut sent, mut next_loss) = (0.0, 1.0 / p);
    let (mut sum, mut rounds, mut losses) = (0.0, 0.0, 0);
    while losses < 30 {
        let loses = sent + path.controller.cwnd() as f64 / f64::from(MSS) >= next_loss;
        let window = path.play(loses.then_some(Event::Loss)).window;
        sent += window;
        if loses {
            next_loss += 1.0 / p;
            losses += 1;
        }
        // The first half of the losses brings the window to its equilibrium.
        if losses >= 15 {
            sum += window;
            rounds += 1.0;
        }
    }
    sum / rounds
}

/// sqrt(1.5 / p): Mathis et al. 1997, for losses evenly spaced.
#[test]
fn newreno_obeys_the_square_root_law() {
    for p in [1e-3, 1e-4, 1e-5] {
        let (mean, law) = (mean_window(newreno(), 100, p), (1.5 / p).sqrt());
        assert!((mean / law - 1.0).abs() < 0.1, "p = {p}: mean window {mean}, law {law}");
    }
}

/// RFC 9438 §5.1, tables 1 and 2, column C = 0.4. (At 1e-2 the round spent in recovery, which the model of the RFC does
/// not have, is a tenth of all rounds.)
#[test]
fn cubic_obeys_its_response_function() {
    for (rtt, p, table) in [
        (100, 1e-3, 38.0),
        (100, 1e-4, 187.0),
        (100, 1e-5, 1054.0),
        (10, 1e-3, 38.0),
        (10, 1e-4, 120.0),
        (10, 1e-5, 379.0),
    ] {
        let mean = mean_window(cubic(true), rtt, p);
        assert!((mean / table - 1.0).abs() < 0.1, "{rtt} ms, p = {p}: mean window {mean}, table {table}");
    }
}
