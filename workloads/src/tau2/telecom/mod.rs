//! A telephone company and a customer's telephone, which both change what the other sees.

mod assertions;
mod company;
mod ordered_toml;
mod phone;
mod records;
mod settings;
mod telephone;

use std::sync::Arc;

use serde_json::{Map, Value};
use smol_str::{SmolStr, format_smolstr};

use self::phone::{PaymentRequest, Performance, User};
use self::records::{BillStatus, LineStatus, Records};
use super::changes::Changes;
use super::environment::{Side, World};
use super::number::Number;
use super::python;
use super::tool::{Answer, Tool, ToolError, fail};

/// Why files of the domain do not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not TOML.
    #[error("{0}")]
    Toml(String),
    /// Not the records that are expected.
    #[error(transparent)]
    Records(#[from] serde_json::Error),
    /// What the telephone's file says is not what is expected.
    #[error("{0}")]
    Telephone(String),
    /// The telephone has a number that the company does not know.
    #[error(transparent)]
    Disagree(#[from] ToolError),
}

impl ReadError {
    /// Whether it is the telephone's file that does not read.
    pub fn is_of_telephone(&self) -> bool {
        matches!(self, Self::Telephone(_) | Self::Disagree(_))
    }
}

/// Company and telephone.
#[derive(Debug, Clone)]
pub struct Telecom {
    records: Arc<Records>,
    user: Arc<User>,
    /// How the VPN performs that the telephone connects to.
    vpn: Performance,
    /// What begins the ids of bills that are made here, and how many were.
    bill_prefix: &'static str,
    bills_made: u32,
}

impl Telecom {
    /// Reads `db.toml` and `user_db.toml`.
    ///
    /// # Errors
    /// What does not read.
    pub fn read(company: &str, telephone: &str) -> Result<Self, ReadError> {
        let telephone = ordered_toml::parse(telephone).map_err(ReadError::Telephone)?;
        Self::of(ordered_toml::parse(company).map_err(ReadError::Toml)?, telephone)
    }

    /// A company and a telephone with these records.
    fn of(company: Value, telephone: Value) -> Result<Self, ReadError> {
        let user: User =
            serde_json::from_value(telephone).map_err(|error| ReadError::Telephone(error.to_string()))?;
        let mut world = Self {
            records: Arc::new(serde_json::from_value(company)?),
            user: Arc::new(user),
            vpn: Performance::Excellent,
            bill_prefix: "B0",
            bills_made: 0,
        };
        world.sync()?;
        Ok(world)
    }

    /// The records as `db.toml` and `user_db.toml` hold them.
    #[cfg(test)]
    pub(super) fn written(&self) -> [Value; 2] {
        [serde_json::json!(*self.records), serde_json::json!(*self.user)]
    }

    /// What [`Self::written`] was asked of.
    #[cfg(test)]
    pub(super) fn read_back([company, telephone]: [Value; 2]) -> Result<Self, ReadError> {
        Self::of(company, telephone)
    }

    fn records_mut(&mut self) -> &mut Records {
        Arc::make_mut(&mut self.records)
    }

    fn user_mut(&mut self) -> &mut User {
        Arc::make_mut(&mut self.user)
    }

    /// The id of the next bill.
    fn bill_id(&mut self) -> SmolStr {
        self.bills_made += 1;
        format_smolstr!("{}{:07X}", self.bill_prefix, self.bills_made)
    }
}

impl World for Telecom {
    const NAME: &'static str = "telecom";

    fn agent_tools() -> &'static [Tool<Self>] {
        company::ALL
    }

    fn user_tools() -> &'static [Tool<Self>] {
        telephone::ALL
    }

    fn sync(&mut self) -> Result<(), ToolError> {
        let Some(number) = self.user.surroundings.phone_number.clone() else {
            return Ok(());
        };
        let line = self.records.line_with(&number)?;
        let plan = self.records.plan_of(line)?;
        let used = Number::of(&line.data_used_gb)?.float();
        let is_exceeded = used >= plan.data_limit_gb + line.data_refueling_gb;
        let (is_active, may_roam) = (line.status == LineStatus::Active, line.roaming_enabled);
        let around = &self.user.surroundings;
        if (
            around.line_active,
            around.roaming_allowed,
            around.mobile_data_usage_exceeded,
        ) != (is_active, may_roam, is_exceeded)
        {
            let around = &mut self.user_mut().surroundings;
            around.line_active = is_active;
            around.roaming_allowed = may_roam;
            around.mobile_data_usage_exceeded = is_exceeded;
        }
        if let Some(paid) = &self.user.surroundings.payment_request
            && paid.paid
        {
            let place = records::place(&self.records.bills, paid.bill_id.as_str())?;
            self.records_mut().bills[place].to_mut().status = BillStatus::Paid;
            self.user_mut().surroundings.payment_request = None;
        }
        if self.user.surroundings.payment_request.is_none() {
            let Some(customer) = self.records.customer_of(number.as_str().into()) else {
                return fail(format!("Customer with phone number {number} not found"));
            };
            let awaiting = self.records.bill_that_is(BillStatus::AwaitingPayment, customer)?;
            if let Some(bill) = awaiting {
                let request = PaymentRequest {
                    bill_id: bill.bill_id.clone(),
                    amount_due: bill.total_due,
                    paid: false,
                };
                self.user_mut().surroundings.payment_request = Some(request);
            }
        }
        Ok(())
    }

    fn act(&mut self, side: Side, name: &str, arguments: &Map<String, Value>) -> Answer {
        let settings = match side {
            Side::Assistant => settings::COMPANY,
            Side::User => settings::TELEPHONE,
        };
        match settings.iter().find(|setting| setting.name == name) {
            Some(setting) => setting.call(self, arguments),
            None => super::environment::call_bare(self, side, name, arguments),
        }
    }

    fn holds(&self, side: Side, name: &str, arguments: &Map<String, Value>) -> Result<bool, ToolError> {
        assertions::holds(self, side, name, arguments)
    }

    fn agent_hash(&self) -> String {
        python::sha256([python::dumps_sorted(&*self.records).as_str()])
    }

    fn user_hash(&self) -> Option<String> {
        Some(python::sha256([python::dumps_sorted(&*self.user).as_str()]))
    }

    /// Its new bills have other ids than those of a conversation, so that records with a new bill are never
    /// equal: the benchmark draws the ids at random.
    fn for_reference(mut self) -> Self {
        self.bill_prefix = "BF";
        self
    }

    fn equals(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.records, &other.records) || self.records.equals(&other.records))
            && python::are_alike(&*self.user, &*other.user)
    }

    fn changes_since(&self, began: &Self, changes: &mut Changes) {
        self.records.changes_since(&began.records, changes);
        changes.compare(Side::User, "", Some(&*began.user), Some(&*self.user));
    }
}
