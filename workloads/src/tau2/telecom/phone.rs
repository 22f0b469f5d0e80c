//! The user's telephone and what is around it.

#![expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "the fields are those of the files"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use smol_str::SmolStr;

use super::super::number::lax_float;
use super::super::python;

/// Everything on the user's side.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct User {
    #[serde(default)]
    pub(super) device: Device,
    #[serde(default)]
    pub(super) surroundings: PhoneContext,
}

/// An enumeration whose values print as text.
macro_rules! values {
    ($($(#[$note:meta])* $name:ident { $($value:ident = $text:literal),* })*) => {$(
        $(#[$note])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub(super) enum $name {
            $(#[serde(rename = $text)] $value),*
        }

        impl $name {
            pub(super) fn text(self) -> &'static str {
                match self {
                    $(Self::$value => $text),*
                }
            }
        }

        // Of a text only: a derived one takes an object with the text as its key too.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = SmolStr::deserialize(deserializer)?;
                match text.as_str() {
                    $($text => Ok(Self::$value),)*
                    other => Err(D::Error::unknown_variant(other, &[$($text),*])),
                }
            }
        }
    )*};
}

values! {
    SimStatus { Active = "active", Missing = "missing", LockedPin = "locked_pin", LockedPuk = "locked_puk" }
    Signal { None = "none", Poor = "poor", Fair = "fair", Good = "good", Excellent = "excellent" }
    Technology { None = "none", G2 = "2G", G3 = "3G", G4 = "4G", G5 = "5G" }
    Connection { Connected = "connected", Searching = "searching", NoService = "no_service", EmergencyOnly = "emergency_only" }
    NetworkMode { Preferred = "4g_5g_preferred", Only4g = "4g_only", Only3g = "3g_only", Only2g = "2g_only" }
    ApnName { Internet = "internet", Broken = "broken" }
    Performance { Unknown = "unknown", Poor = "poor", Fair = "fair", Good = "good", Excellent = "excellent" }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Device {
    pub(super) sim_card_status: SimStatus,
    pub(super) sim_card_missing: bool,
    pub(super) airplane_mode: bool,
    pub(super) network_signal_strength: Signal,
    pub(super) network_technology_connected: Technology,
    pub(super) network_connection_status: Connection,
    pub(super) battery_level: i64,
    pub(super) data_enabled: bool,
    pub(super) roaming_enabled: bool,
    pub(super) network_mode_preference: NetworkMode,
    pub(super) active_apn_settings: Apn,
    pub(super) wifi_enabled: bool,
    pub(super) wifi_connected: bool,
    pub(super) wifi_ssid: Option<SmolStr>,
    pub(super) wifi_signal_strength: Signal,
    pub(super) wifi_calling_enabled: bool,
    pub(super) wifi_calling_mms_over_wifi: Option<bool>,
    pub(super) data_saver_mode: bool,
    pub(super) vpn_enabled_setting: bool,
    pub(super) vpn_connected: bool,
    pub(super) vpn_details: Option<Vpn>,
    pub(super) app_statuses: IndexMap<SmolStr, App>,
}

impl Default for Device {
    fn default() -> Self {
        let app = |name: &str, permissions| {
            let app_name = SmolStr::new(name);
            (
                app_name.clone(),
                App {
                    app_name,
                    permissions,
                },
            )
        };
        let permissions = |sms, phone, network| Permissions {
            sms,
            storage: true,
            phone,
            network,
        };
        Self {
            sim_card_status: SimStatus::Active,
            sim_card_missing: false,
            airplane_mode: false,
            network_signal_strength: Signal::Good,
            network_technology_connected: Technology::G5,
            network_connection_status: Connection::Connected,
            battery_level: 80,
            data_enabled: true,
            roaming_enabled: false,
            network_mode_preference: NetworkMode::Preferred,
            active_apn_settings: Apn::default(),
            wifi_enabled: false,
            wifi_connected: false,
            wifi_ssid: None,
            wifi_signal_strength: Signal::None,
            wifi_calling_enabled: false,
            wifi_calling_mms_over_wifi: Some(false),
            data_saver_mode: false,
            vpn_enabled_setting: false,
            vpn_connected: false,
            vpn_details: None,
            app_statuses: IndexMap::from([
                app("messaging", permissions(true, true, false)),
                app("browser", permissions(false, false, true)),
            ]),
        }
    }
}

/// Settings of the access point.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Apn {
    pub(super) apn_name: ApnName,
    pub(super) reset_at_reboot: bool,
    pub(super) mms_apn: Option<SmolStr>,
    pub(super) mmsc_url: Option<SmolStr>,
    pub(super) mms_proxy: Option<SmolStr>,
    pub(super) mms_port: Option<i64>,
}

impl Default for Apn {
    fn default() -> Self {
        Self {
            apn_name: ApnName::Internet,
            reset_at_reboot: false,
            mms_apn: Some("mms".into()),
            mmsc_url: Some("http://mms.carrier.com/mms/wapenc".into()),
            mms_proxy: None,
            mms_port: None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vpn {
    #[serde(default)]
    pub(super) server_address: Option<SmolStr>,
    #[serde(default)]
    pub(super) protocol: Option<SmolStr>,
    #[serde(default = "unknown")]
    pub(super) server_performance: Performance,
}

fn unknown() -> Performance {
    Performance::Unknown
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct App {
    pub(super) app_name: SmolStr,
    #[serde(default)]
    pub(super) permissions: Permissions,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Permissions {
    pub(super) sms: bool,
    pub(super) storage: bool,
    pub(super) phone: bool,
    pub(super) network: bool,
}

impl Permissions {
    /// Their names, in order.
    pub(super) const NAMES: [&'static str; 4] = ["sms", "storage", "phone", "network"];

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "sms" => Some(&mut self.sms),
            "storage" => Some(&mut self.storage),
            "phone" => Some(&mut self.phone),
            "network" => Some(&mut self.network),
            _ => None,
        }
    }

    /// The names of those that are granted.
    pub(super) fn granted(&self) -> Vec<&'static str> {
        let granted = [self.sms, self.storage, self.phone, self.network];
        let granted = Self::NAMES.into_iter().zip(granted);
        granted
            .filter(|(_, granted)| *granted)
            .map(|(name, _)| name)
            .collect()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PhoneContext {
    pub(super) name: Option<SmolStr>,
    pub(super) phone_number: Option<SmolStr>,
    pub(super) is_abroad: bool,
    pub(super) roaming_allowed: bool,
    pub(super) signal_strength: Arc<IndexMap<Technology, Signal>>,
    pub(super) mobile_data_usage_exceeded: bool,
    pub(super) line_active: bool,
    pub(super) payment_request: Option<PaymentRequest>,
}

impl Default for PhoneContext {
    fn default() -> Self {
        Self {
            name: None,
            phone_number: None,
            is_abroad: false,
            roaming_allowed: false,
            signal_strength: Arc::new(IndexMap::from([
                (Technology::G2, Signal::Poor),
                (Technology::G3, Signal::Fair),
                (Technology::G4, Signal::Good),
                (Technology::G5, Signal::Excellent),
            ])),
            mobile_data_usage_exceeded: false,
            line_active: true,
            payment_request: None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaymentRequest {
    pub(super) bill_id: SmolStr,
    #[serde(deserialize_with = "lax_float")]
    pub(super) amount_due: f64,
    #[serde(default)]
    pub(super) paid: bool,
}

impl User {
    pub(super) fn sim_status(&self) -> SimStatus {
        if self.device.sim_card_missing {
            SimStatus::Missing
        } else {
            self.device.sim_card_status
        }
    }

    /// Looks for a network, as far as card, settings and line let it.
    pub(super) fn search_network(&mut self) {
        let signal = |technology| {
            let mut signals = self.surroundings.signal_strength.iter();
            let signal = signals.find(|(other, _)| **other == technology);
            signal.map_or(Signal::None, |(_, signal)| *signal)
        };
        let found = |technology| (Connection::Connected, technology, signal(technology));
        let blocked = self.sim_status() != SimStatus::Active
            || self.device.airplane_mode
            || self.device.active_apn_settings.apn_name == ApnName::Broken
            || !self.surroundings.line_active;
        let (connection, technology, strength) = if blocked {
            (Connection::NoService, Technology::None, Signal::None)
        } else {
            match self.device.network_mode_preference {
                NetworkMode::Preferred if signal(Technology::G5) != Signal::None => found(Technology::G5),
                NetworkMode::Preferred | NetworkMode::Only4g => found(Technology::G4),
                NetworkMode::Only3g => found(Technology::G3),
                NetworkMode::Only2g => found(Technology::G2),
            }
        };
        self.device.network_connection_status = connection;
        self.device.network_technology_connected = technology;
        self.device.network_signal_strength = strength;
    }

    pub(super) fn has_mobile_data(&self) -> bool {
        let (device, around) = (&self.device, &self.surroundings);
        !device.airplane_mode
            && device.network_signal_strength != Signal::None
            && device.network_connection_status != Connection::NoService
            && (!around.is_abroad || (device.roaming_enabled && around.roaming_allowed))
            && device.data_enabled
            && !around.mobile_data_usage_exceeded
    }

    pub(super) fn can_send_mms(&self) -> bool {
        let device = &self.device;
        let may_send = |app: &App| app.permissions.storage && app.permissions.sms;
        self.has_mobile_data()
            && device.network_technology_connected != Technology::G2
            && !(device.wifi_calling_enabled && device.wifi_calling_mms_over_wifi == Some(true))
            && device.active_apn_settings.mmsc_url.is_some()
            && device.app_statuses.get("messaging").is_some_and(may_send)
    }

    /// Megabits a second, and what that is called; none without mobile data.
    pub(super) fn speed(&self) -> Option<(f64, &'static str)> {
        if !self.has_mobile_data() {
            return None;
        }
        let device = &self.device;
        let slow_vpn = device
            .vpn_details
            .as_ref()
            .is_some_and(|vpn| vpn.server_performance == Performance::Poor);
        let mut factor = 1.0;
        if device.vpn_connected && slow_vpn {
            factor *= 0.1;
        }
        if device.data_saver_mode {
            factor *= 0.2;
        }
        let (least, most) = match device.network_technology_connected {
            Technology::None => (0.0, 0.0),
            Technology::G2 => (0.1, 0.4),
            Technology::G3 => (1.0, 5.0),
            Technology::G4 => (10.0, 100.0),
            Technology::G5 => (50.0, 500.0),
        };
        let signal = match device.network_signal_strength {
            Signal::None => 0.0,
            Signal::Poor => 0.2,
            Signal::Fair => 0.5,
            Signal::Good => 0.8,
            Signal::Excellent => 1.0,
        };
        let speed = python::round(f64::midpoint(least, most) * signal * factor);
        let called = match speed {
            speed if speed < 1.0 => "Very Poor",
            speed if speed < 5.0 => "Poor",
            speed if speed < 25.0 => "Fair",
            speed if speed < 100.0 => "Good",
            _ => "Excellent",
        };
        Some((speed, called))
    }

    /// Writes what the status bar shows.
    pub(super) fn write_status_bar(&self, bar: &mut String) {
        let device = &self.device;
        let technology = device.network_technology_connected;
        let is_online = device.data_enabled && technology != Technology::None;
        if device.airplane_mode {
            bar.push_str("✈️ Airplane Mode");
        } else {
            bar.push_str(match device.network_signal_strength {
                Signal::None => "📵 No Signal",
                Signal::Poor => "📶¹ Poor",
                Signal::Fair => "📶² Fair",
                Signal::Good => "📶³ Good",
                Signal::Excellent => "📶⁴ Excellent",
            });
            if technology != Technology::None {
                bar.push_str(" | ");
                bar.push_str(technology.text());
            }
            bar.push_str(match is_online {
                true if device.data_saver_mode => " | 📱 Data Enabled | 🔽 Data Saver",
                true => " | 📱 Data Enabled",
                false => " | 📵 Data Disabled",
            });
        }
        if device.wifi_enabled && device.wifi_connected {
            match &device.wifi_ssid {
                Some(ssid) => bar.extend([" | 📡 Connected to ", ssid]),
                None => bar.push_str(" | 📡 Enabled"),
            }
        }
        if device.vpn_connected {
            bar.push_str(" | 🔒 VPN Connected");
        }
        let _ = write!(bar, " | 🔋 {}%", device.battery_level);
    }
}
