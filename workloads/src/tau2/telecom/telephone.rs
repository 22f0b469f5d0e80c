//! The tools of the user: what can be seen and done on the telephone.

use std::fmt::{Display, Write as _};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::super::python;
use super::super::tool::{Answer, Call, Declared, Kind, Parameter, Shape, Tool, ToolError, fail, required};
use super::Telecom;
use super::phone::{Apn, App, Connection, NetworkMode, Permissions, SimStatus, User, Vpn};

const MODES: &[&str] = &["4g_5g_preferred", "4g_only", "3g_only", "2g_only"];
const APP: Parameter = required("app_name", Shape::Text, "Name of the app, such as `messaging`.");

static APN: Declared = Declared {
    name: "APNSettings",
    schema: || {
        let text_or_null = |default: Value| json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "default": default });
        let standard = Apn::default();
        json!({
            "additionalProperties": false,
            "properties": {
                "apn_name": { "$ref": "#/$defs/APNNames", "default": "internet" },
                "reset_at_reboot": { "default": false, "type": "boolean" },
                "mms_apn": text_or_null(json!(standard.mms_apn)),
                "mmsc_url": text_or_null(json!(standard.mmsc_url)),
                "mms_proxy": text_or_null(Value::Null),
                "mms_port": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null },
            },
            "type": "object",
        })
    },
    others: || {
        let mut others = Map::new();
        let names = json!({ "enum": ["internet", "broken"], "type": "string" });
        others.insert("APNNames".to_owned(), names);
        others
    },
};

/// A tool without arguments that says what the telephone shows.
const fn look(
    name: &'static str,
    description: &'static str,
    run: fn(&mut Telecom, &Call) -> Answer,
) -> Tool<Telecom> {
    Tool {
        name,
        kind: Kind::Read,
        description,
        parameters: &[],
        run,
    }
}

/// A tool without arguments that does something to the telephone.
const fn act(
    name: &'static str,
    description: &'static str,
    run: fn(&mut Telecom, &Call) -> Answer,
) -> Tool<Telecom> {
    Tool {
        kind: Kind::Write,
        ..look(name, description, run)
    }
}

/// In the benchmark's order.
pub(super) static ALL: &[Tool<Telecom>] = &[
    look(
        "check_status_bar",
        "See the icons in the status bar.",
        |world, _| {
            let mut bar = "Status Bar: ".to_owned();
            world.user.write_status_bar(&mut bar);
            Ok(bar)
        },
    ),
    look(
        "check_network_status",
        "See connection, signal and switches for mobile data, roaming and Wi-Fi.",
        |world, _| Ok(network_status(&world.user)),
    ),
    look(
        "check_network_mode_preference",
        "See which mobile networks the phone prefers.",
        |world, _| {
            Ok(format!(
                "Network Mode Preference: {}",
                world.user.device.network_mode_preference.text()
            ))
        },
    ),
    Tool {
        name: "set_network_mode_preference",
        kind: Kind::Write,
        description: "Change which mobile networks the phone prefers.",
        parameters: &[required(
            "mode",
            Shape::OneOfOrText("NetworkModePreference", MODES),
            "The networks.",
        )],
        run: set_network_mode,
    },
    look(
        "run_speed_test",
        "Measure how fast the internet connection is.",
        |world, _| Ok(speed_test(&world.user)),
    ),
    act(
        "toggle_airplane_mode",
        "Switch airplane mode on or off.",
        |world, _| {
            toggle_airplane_mode(world.user_mut());
            world.switched("Airplane Mode", |user| user.device.airplane_mode)
        },
    ),
    look(
        "check_sim_status",
        "See whether the SIM card works.",
        |world, _| {
            Ok(match world.user.sim_status() {
                SimStatus::Active => "Your SIM card is active and working.",
                SimStatus::Missing => "No SIM card detected in the phone.",
                SimStatus::LockedPin => "The SIM card is locked with a PIN code.",
                SimStatus::LockedPuk => "The SIM card is locked with a PUK code.",
            }
            .to_owned())
        },
    ),
    act(
        "reseat_sim_card",
        "Take the SIM card out and put it in again.",
        |world, _| {
            if world.user.device.sim_card_status == SimStatus::Missing {
                return fail("there is no SIM card");
            }
            let user = world.user_mut();
            user.device.sim_card_missing = false;
            user.search_network();
            world.done("SIM card re-seated successfully.")
        },
    ),
    act("toggle_data", "Switch mobile data on or off.", |world, _| {
        let user = world.user_mut();
        user.device.data_enabled ^= true;
        user.search_network();
        world.switched("Mobile Data", |user| user.device.data_enabled)
    }),
    act("toggle_roaming", "Switch data roaming on or off.", |world, _| {
        toggle_roaming(world.user_mut());
        world.switched("Data Roaming", |user| user.device.roaming_enabled)
    }),
    look(
        "check_data_restriction_status",
        "See whether data saver is on.",
        |world, _| {
            let saving = world.user.device.data_saver_mode;
            Ok(if saving {
                "Data Saver mode is ON (limits data usage)."
            } else {
                "Data Saver mode is OFF."
            }
            .to_owned())
        },
    ),
    act(
        "toggle_data_saver_mode",
        "Switch data saver on or off.",
        |world, _| {
            world.user_mut().device.data_saver_mode ^= true;
            world.switched("Data Saver Mode", |user| user.device.data_saver_mode)
        },
    ),
    look(
        "check_apn_settings",
        "See the technical settings of the access point.",
        |world, _| {
            let settings = &world.user.device.active_apn_settings;
            Ok(format!(
                "Current APN Name: {}\nMMSC URL (for picture messages): {}\n(These are technical settings, usually best \
             left unchanged.)",
                settings.apn_name.text(),
                settings.mmsc_url.as_deref().unwrap_or("Not Set"),
            ))
        },
    ),
    Tool {
        name: "set_apn_settings",
        kind: Kind::Write,
        description: "Change the technical settings of the access point.",
        parameters: &[required("apn_settings", Shape::Object(&APN), "All settings.")],
        run: |world, call| {
            let given = call.given("apn_settings");
            if !given.is_object() {
                return fail(format!(
                    "apn_settings should be an object, not {}",
                    python::repr(given)
                ));
            }
            let settings = Apn::deserialize(given);
            let settings = settings.map_err(|error| ToolError(format!("apn_settings: {error}")))?;
            let name = settings.apn_name.text();
            let user = world.user_mut();
            user.device.active_apn_settings = settings;
            user.search_network();
            world.done(format_args!("APN settings set to: {name}"))
        },
    },
    act(
        "reset_apn_settings",
        "Put the settings of the access point back at the next restart.",
        |world, _| {
            let user = world.user_mut();
            user.device.active_apn_settings.reset_at_reboot = true;
            user.search_network();
            world.done("APN settings will reset at reboot.")
        },
    ),
    look(
        "check_wifi_status",
        "See whether Wi-Fi is on and connected.",
        |world, _| {
            let device = &world.user.device;
            Ok(if !device.wifi_enabled {
                "Wi-Fi is turned OFF.".to_owned()
            } else if device.wifi_connected {
                format!(
                    "Wi-Fi is ON and connected to '{}'. Signal strength: {}.",
                    device.wifi_ssid.as_deref().unwrap_or("None"),
                    device.wifi_signal_strength.text()
                )
            } else {
                "Wi-Fi is ON but not connected to any network.".to_owned()
            })
        },
    ),
    act("toggle_wifi", "Switch Wi-Fi on or off.", |world, _| {
        if world.user.device.airplane_mode {
            return world.done("Cannot change Wi-Fi settings while Airplane Mode is ON.");
        }
        let user = world.user_mut();
        user.device.wifi_enabled ^= true;
        if !user.device.wifi_enabled {
            leave_wifi(user);
        }
        world.switched("Wi-Fi", |user| user.device.wifi_enabled)
    }),
    look(
        "check_wifi_calling_status",
        "See whether calls go over Wi-Fi.",
        |world, _| {
            let calling = on(world.user.device.wifi_calling_enabled);
            Ok(format!("Wi-Fi Calling is currently turned {calling}."))
        },
    ),
    act(
        "toggle_wifi_calling",
        "Switch calls over Wi-Fi on or off.",
        |world, _| {
            world.user_mut().device.wifi_calling_enabled ^= true;
            world.switched("Wi-Fi Calling", |user| user.device.wifi_calling_enabled)
        },
    ),
    look("check_vpn_status", "See whether a VPN is in use.", |world, _| {
        Ok(vpn_status(&world.user))
    }),
    act("connect_vpn", "Connect to the VPN.", |world, _| {
        if world.user.device.vpn_connected {
            return Ok("VPN already connected.".to_owned());
        }
        world.connect_vpn();
        world.done("VPN connected successfully.")
    }),
    act("disconnect_vpn", "Leave the VPN.", |world, _| {
        if !world.user.device.vpn_connected {
            return world.done("No active VPN connection to disconnect.");
        }
        leave_vpn(world.user_mut());
        world.done("VPN disconnected successfully.")
    }),
    look("check_installed_apps", "List the apps.", |world, _| {
        let apps: Vec<&str> = world
            .user
            .device
            .app_statuses
            .keys()
            .map(SmolStr::as_str)
            .collect();
        Ok(format!(
            "The following apps are installed on the phone: {}",
            apps.join(", ")
        ))
    }),
    Tool {
        name: "check_app_status",
        kind: Kind::Read,
        description: "See how an app stands.",
        parameters: &[APP],
        run: |world, call| {
            let key = call.key("app_name")?;
            let Some(app) = world.app(key.id()) else {
                return Ok(format!("App '{key}' not found on this phone."));
            };
            let granted = app.permissions.granted();
            let mut lines = vec![format!("Status for App: {key}")];
            if granted.is_empty() {
                lines.push(" - Permissions: None granted.".to_owned());
            } else {
                lines.push(" - Permissions Granted:".to_owned());
                lines.extend(granted.into_iter().map(|name| format!("   - {name}")));
            }
            Ok(lines.join("\n"))
        },
    },
    Tool {
        name: "check_app_permissions",
        kind: Kind::Read,
        description: "See what an app may do.",
        parameters: &[APP],
        run: |world, call| {
            let key = call.key("app_name")?;
            Ok(match world.app(key.id()).map(|app| app.permissions.granted()) {
                None => format!("App '{key}' not found on this phone."),
                Some(granted) if granted.is_empty() => {
                    format!("App '{key}' currently has no permissions granted.")
                }
                Some(granted) => format!("App '{key}' has permission for: {}.", granted.join(", ")),
            })
        },
    },
    Tool {
        name: "grant_app_permission",
        kind: Kind::Write,
        description: "Let an app do something.",
        parameters: &[
            APP,
            required("permission", Shape::Text, "What, such as `storage`."),
        ],
        run: grant_app_permission,
    },
    look(
        "can_send_mms",
        "See whether picture messages can be sent.",
        |world, _| {
            Ok(if world.user.can_send_mms() {
                "Your messaging app can send MMS messages."
            } else {
                "Your messaging app cannot send MMS messages."
            }
            .to_owned())
        },
    ),
    act("reboot_device", "Restart the phone.", |world, _| {
        let user = world.user_mut();
        let mut lines = Vec::new();
        if user.device.active_apn_settings.reset_at_reboot {
            lines.push("Resetting APN settings...");
            user.device.active_apn_settings = Apn::default();
        }
        lines.push("Restarting network services...");
        user.device.network_connection_status = Connection::Searching;
        user.search_network();
        world.done(lines.join("\n"))
    }),
    look(
        "check_payment_request",
        "See whether the company asks for a payment.",
        |world, _| {
            Ok(match &world.user.surroundings.payment_request {
                None => "No payment request has been made.".to_owned(),
                Some(request) => format!(
                    "You have a payment request for bill {} of {} USD.",
                    request.bill_id,
                    python::float(request.amount_due)
                ),
            })
        },
    ),
    act("make_payment", "Pay what the company asks for.", |world, _| {
        let Some(request) = &mut world.user_mut().surroundings.payment_request else {
            return Ok("You do not have a payment request.".to_owned());
        };
        request.paid = true;
        Ok(format!(
            "Payment of {} USD has been made for bill {}.",
            python::float(request.amount_due),
            request.bill_id
        ))
    }),
];

impl Telecom {
    fn app(&self, name: Option<&str>) -> Option<&App> {
        self.user.device.app_statuses.get(name?)
    }

    /// What was done, with the status bar below.
    #[expect(clippy::unnecessary_wraps, reason = "what a tool returns")]
    fn done(&self, what: impl Display) -> Answer {
        let mut told = String::with_capacity(160);
        let _ = write!(told, "{what}\nStatus Bar: ");
        self.user.write_status_bar(&mut told);
        Ok(told)
    }

    fn switched(&self, what: &str, is_on: fn(&User) -> bool) -> Answer {
        self.done(format_args!("{what} is now {}.", on(is_on(&self.user))))
    }

    pub(super) fn connect_vpn(&mut self) {
        let details = Vpn {
            server_address: Some("192.168.1.1".into()),
            protocol: Some("OpenVPN".into()),
            server_performance: self.vpn,
        };
        let device = &mut self.user_mut().device;
        device.vpn_connected = true;
        device.vpn_details = Some(details);
    }
}

fn on(is_on: bool) -> &'static str {
    if is_on { "ON" } else { "OFF" }
}

fn leave_wifi(user: &mut User) {
    user.device.wifi_connected = false;
    user.device.wifi_ssid = None;
    user.device.wifi_signal_strength = super::phone::Signal::None;
}

fn leave_vpn(user: &mut User) {
    user.device.vpn_connected = false;
    user.device.vpn_details = None;
}

pub(super) fn toggle_airplane_mode(user: &mut User) {
    user.device.airplane_mode ^= true;
    if user.device.airplane_mode {
        leave_wifi(user);
        leave_vpn(user);
    } else {
        user.device.network_connection_status = Connection::Searching;
        if user.device.wifi_enabled {
            leave_wifi(user);
        }
    }
    user.search_network();
}

pub(super) fn toggle_roaming(user: &mut User) {
    user.device.roaming_enabled ^= true;
    user.search_network();
}

fn network_status(user: &User) -> String {
    let device = &user.device;
    let yes = |is_so: bool| if is_so { "Yes" } else { "No" };
    let mut lines = vec![
        format!("Airplane Mode: {}", on(device.airplane_mode)),
        format!("SIM Card Status: {}", user.sim_status().text()),
        format!("Cellular Connection: {}", device.network_connection_status.text()),
        format!("Cellular Signal: {}", device.network_signal_strength.text()),
        format!(
            "Cellular Network Type: {}",
            device.network_technology_connected.text()
        ),
        format!("Mobile Data Enabled: {}", yes(device.data_enabled)),
        format!("Data Roaming Enabled: {}", yes(device.roaming_enabled)),
        format!("Wi-Fi Radio: {}", on(device.wifi_enabled)),
        format!("Wi-Fi Connected: {}", yes(device.wifi_connected)),
    ];
    if device.wifi_connected {
        let network = device.wifi_ssid.as_deref().unwrap_or("None");
        lines.push(format!("Connected Wi-Fi Network: {network}"));
    }
    lines.join("\n")
}

pub(super) fn set_network_mode(world: &mut Telecom, call: &Call) -> Answer {
    let given = call.given("mode");
    let Ok(mode) = NetworkMode::deserialize(given) else {
        return world.done(format_args!(
            "Failed to set network mode: '{}' is not a valid option. Please use one of: {}",
            python::text(given),
            MODES.join(", ")
        ));
    };
    let user = world.user_mut();
    user.device.network_mode_preference = mode;
    user.search_network();
    world.done(format_args!("Preferred Network Mode set to: {}", mode.text()))
}

fn speed_test(user: &User) -> String {
    let Some((speed, called)) = user.speed() else {
        return "Speed test failed: No Connection.".to_owned();
    };
    let advice = match called {
        "Very Poor" => "Connection is very slow. Basic web browsing might be difficult.",
        "Poor" => "Connection is slow. Web browsing may be sluggish, streaming difficult.",
        "Fair" => "Connection is okay for web browsing and some standard definition streaming.",
        "Good" => "Connection is good for most activities, including HD streaming.",
        _ => "Connection is very fast.",
    };
    format!("Speed Test Result: {speed:.2} Mbps ({called}). {advice}")
}

fn vpn_status(user: &User) -> String {
    let device = &user.device;
    match &device.vpn_details {
        Some(vpn) if device.vpn_connected => {
            let text = |text: &Option<SmolStr>| python::repr(&json!(text));
            let performance = vpn.server_performance.text();
            format!(
                "VPN is ON and connected. Details: {{'server_address': {}, 'protocol': {}, 'server_performance': \
                 <PerformanceLevel.{}: '{performance}'>}}",
                text(&vpn.server_address),
                text(&vpn.protocol),
                performance.to_uppercase(),
            )
        }
        None if device.vpn_connected => "VPN is ON and connected (no specific details available).".to_owned(),
        _ if device.vpn_enabled_setting => {
            "VPN is turned ON in settings, but currently not connected.".to_owned()
        }
        _ => "VPN is turned OFF.".to_owned(),
    }
}

fn grant_app_permission(world: &mut Telecom, call: &Call) -> Answer {
    let key = call.key("app_name")?;
    let permission = call.text("permission")?.to_lowercase();
    let apps = &mut world.user_mut().device.app_statuses;
    let app = key.id().and_then(|name| apps.get_mut(name));
    let Some(app) = app else {
        return world.done(format_args!(
            "Error. App '{key}' not found. Cannot grant permission."
        ));
    };
    match app.permissions.get_mut(&permission) {
        Some(granted) => {
            *granted = true;
            world.done(format_args!(
                "Success. Permission '{permission}' granted to app '{key}'."
            ))
        }
        None => world.done(format_args!(
            "Error. Permission '{permission}' not tracked for app '{key}', available permissions: {}",
            python::repr(&json!(Permissions::NAMES))
        )),
    }
}
