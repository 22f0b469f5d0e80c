//! The rules of a deployment, read from the policy in its system message.
//!
//! The agent knows only the rules that the text holds: take a sentence out of the policy, and it
//! does not observe it.

use crate::simulated::text::block;

/// What the policy lets an agent do.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Handbook {
    /// The day of the conversation, if the policy names it (`2026-03-16`).
    pub(super) today: Option<String>,
    /// Whether customers are to be verified.
    pub(super) verify: bool,
    /// States in which an order can be cancelled by anyone.
    pub(super) cancellable: Vec<String>,
    /// States in which club members can cancel.
    pub(super) cancellable_by_members: Vec<String>,
    /// Days after delivery in which money goes back the way it was paid.
    pub(super) refund_days: Option<i64>,
    /// Days after delivery in which a voucher is given.
    pub(super) voucher_days: Option<i64>,
    /// Days after delivery in which an exchange is possible.
    pub(super) exchange_days: Option<i64>,
    /// Whether clearance items stay with the customer.
    pub(super) clearance_is_final: bool,
    /// States in which the address can be changed.
    pub(super) address_states: Vec<String>,
    /// Order total from which the address is fixed.
    pub(super) address_limit: Option<f64>,
    /// Whether an appointment is fixed on its own day.
    pub(super) appointments_fixed_on_day: bool,
    /// Words for what must be handed to a person: states, payments, accounts, events.
    pub(super) handover_causes: Vec<String>,
}

const STATES: [&str; 5] = ["placed", "packed", "shipped", "delivered", "cancelled"];

impl Handbook {
    /// Reads the policy of a system message: what stands in its `<policy>` tag, else all of it.
    pub(super) fn read(system: &str) -> Self {
        let text = block(system, "policy").unwrap_or(system);
        let mut book = Self {
            today: iso_date(text).map(str::to_owned),
            ..Self::default()
        };
        let mut heading = String::new();
        for line in text.lines() {
            let line = line.trim();
            if !line.starts_with('-') && line.len() < 40 {
                heading = line.to_lowercase();
                continue;
            }
            for sentence in line.split_inclusive(". ") {
                book.note(&heading, &sentence.to_lowercase());
            }
        }
        book
    }

    fn note(&mut self, heading: &str, sentence: &str) {
        let states = || {
            STATES
                .iter()
                .filter(|state| sentence.contains(&format!("\"{state}\"")))
                .map(|state| (*state).to_owned())
        };
        let last_number = || numbers(sentence).last().copied();
        if sentence.contains("verify") && sentence.contains("customer") {
            self.verify = true;
        }
        if heading.contains("cancel") && sentence.contains("can be cancelled") {
            if sentence.contains("club") {
                self.cancellable_by_members.extend(states());
            } else {
                self.cancellable.extend(states());
            }
        }
        if heading.contains("return") && sentence.contains("days") {
            if sentence.contains("original") {
                self.refund_days = last_number().map(|days| days as i64);
            } else if sentence.contains("voucher") {
                self.voucher_days = last_number().map(|days| days as i64);
            }
        }
        if heading.contains("exchange") && sentence.contains("days") {
            self.exchange_days = last_number().map(|days| days as i64);
        }
        if sentence.contains("clearance") && (sentence.contains("neither") || sentence.contains("not")) {
            self.clearance_is_final = true;
        }
        if heading.contains("address") {
            self.address_states.extend(states());
            if sentence.contains("total") {
                self.address_limit = last_number();
            }
        }
        if sentence.contains("appointment") && sentence.contains("day before") {
            self.appointments_fixed_on_day = true;
        }
        if (heading.contains("transfer") || sentence.contains("transfer"))
            && sentence.contains("only")
            && (sentence.contains(" if ") || sentence.contains("when"))
        {
            for cause in ["lost", "invoice", "locked", "injury", "failed"] {
                if sentence.contains(cause) {
                    self.handover_causes.push(cause.to_owned());
                }
            }
        }
    }

    /// Whether the policy wants a cause handed to a person.
    pub(super) fn hands_over(&self, cause: &str) -> bool {
        self.handover_causes.iter().any(|known| known == cause)
    }
}

/// The numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|character: char| !(character.is_ascii_digit() || character == '.'))
        .filter_map(|piece| piece.trim_matches('.').parse().ok())
        .collect()
}

/// The first date of the form `2026-03-16`.
pub(super) fn iso_date(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(9)).find_map(|start| {
        let candidate = text.get(start..start + 10)?;
        let shape = candidate.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        shape.then_some(candidate)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "You work here.\n<policy>\nA shop. Today is Monday, 2026-03-16.\n\nIdentity\n- Verify the customer with verify_identity.\n\nCancellation\n- An order in state \"placed\" can be cancelled. An order in state \"packed\" can be cancelled for club members only.\n\nReturns\n- Up to 30 days after delivery: refund_to \"original\".\n- 31 to 60 days after delivery: \"voucher\" only.\n- Clearance items are neither taken back nor exchanged.\n\nDelivery address\n- It can be changed while the order is \"placed\" or \"packed\", but never when the order's total is 1500.00 or more.\n\nTransfer to a human\n- Transfer only if the shipment is \"lost\" or if the account is \"locked\".\n</policy>";

    #[test]
    fn rules_are_read() {
        let book = Handbook::read(POLICY);
        assert_eq!(book.today.as_deref(), Some("2026-03-16"));
        assert!(book.verify && book.clearance_is_final);
        assert_eq!(
            (&book.cancellable[..], &book.cancellable_by_members[..]),
            (&["placed".to_owned()][..], &["packed".to_owned()][..])
        );
        assert_eq!(
            (book.refund_days, book.voucher_days, book.exchange_days),
            (Some(30), Some(60), None)
        );
        assert_eq!((book.address_states.len(), book.address_limit), (2, Some(1500.0)));
        assert!(book.hands_over("lost") && book.hands_over("locked") && !book.hands_over("invoice"));
    }

    #[test]
    fn what_is_not_written_is_not_known() {
        let book =
            Handbook::read(&POLICY.replace("- Up to 30 days after delivery: refund_to \"original\".\n", ""));
        assert_eq!(book.refund_days, None);
        assert_eq!(Handbook::read(""), Handbook::default());
    }
}
