//! Findings for people.

use std::fmt::Write;

use super::{Findings, Status};

/// Escape sequences, or nothing.
struct Paint {
    colours: bool,
}

impl Paint {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A status in a column of its own.
    fn status(&self, status: Status) -> String {
        match status {
            Status::Ok => self.paint("32", "ok     "),
            Status::Limited => self.paint("33", "limited"),
            Status::Missing => self.paint("31", "missing"),
        }
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// The findings, line by line.
pub(super) fn render(findings: &Findings, colours: bool) -> String {
    let paint = Paint { colours };
    let mut text = String::new();
    let Findings { version, kernel, machine, .. } = findings;
    let _ = writeln!(text, "Astraea {version} on Linux {kernel}, {machine}\n");
    for check in &findings.checks {
        let _ = writeln!(text, "  {}  {:<24}{}", paint.status(check.status), check.name, check.found);
        let names: Vec<_> = check.disables.iter().map(|feature| feature.name()).collect();
        let consequence = (!names.is_empty()).then(|| names.join(", "));
        let notes =
            [("disables", consequence.as_deref()), ("so", check.limits.as_deref()), ("fix", check.fix.as_deref())];
        for (label, note) in notes.into_iter().filter_map(|(label, note)| Some((label, note?))) {
            let _ = writeln!(text, "  {:9}{} {note}", "", paint.dim(&format!("{label:<9}")));
        }
    }
    let _ = writeln!(text, "\nWhat works here\n");
    let _ = writeln!(
        text,
        "  {}  {:<30}everything that is simulated",
        paint.paint("32", "yes"),
        "astraea run, train, explain"
    );
    for ability in &findings.abilities {
        let answer = if ability.works { paint.paint("32", "yes") } else { paint.paint("31", "no ") };
        let because = if ability.works { String::new() } else { format!("needs {}", ability.missing.join(", ")) };
        let line = format!("  {answer}  {:<30}{because}", ability.feature.name());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
