use astraea_policy::Form;

use super::*;
use crate::rule;

#[test]
fn without_a_service_the_rule_decides_at_once_after_the_timeout() {
    let address: Address = "unix:/nonexistent/astraea.sock".parse().unwrap();
    let config = AgentConfig::new(Form::Pure);
    let mut client = Client::new(address, None, Duration::from_millis(5), config);
    let mut report = Report { window: 1e4, srtt: 0.02, ..Report::default() };
    report.signals.rate = 1000.0;
    for period in 1..=3 {
        let decision = client.decide(7, &report);
        assert_eq!((decision.flow, decision.period, decision.origin), (7, period, Origin::Rule));
        assert_eq!(decision.action, rule::action(&config, &report.signals));
        assert!(decision.window > 1e4, "an idle path is filled");
    }
    assert_eq!(client.counts(), Counts { ruled: 3, ..Counts::default() });
    let error = client.wait(Duration::from_millis(20)).unwrap_err().to_string();
    assert_eq!(error, "unix:/nonexistent/astraea.sock: no service: No such file or directory");
}
