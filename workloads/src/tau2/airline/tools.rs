//! The tools of the airline's agent.

use serde_json::{Map, Value, json};

use super::super::cached_json::CachedJson;
use super::super::number::{self, Number};
use super::super::python;
use super::super::tool::{
    Answer, Call, Declared, Key, Kind, Parameter, Shape, Tool, ToolError, fail, required,
};
use super::super::{calculate, transfer};
use super::model::{
    Cabins, Departure, DirectFlight, Flight, FlightInfo, Passenger, Payment, PaymentMethod, Reservation,
    Seats, Segment, User,
};
use super::{Airline, NOW};

const CABINS: &[&str] = &["business", "economy", "basic_economy"];
const FLIGHT_TYPES: &[&str] = &["round_trip", "one_way"];
const YES_OR_NO: &[&str] = &["yes", "no"];

/// What a checked bag beyond the free ones costs, in dollars, and insurance for a passenger.
const BAG: i128 = 50;
const INSURANCE: i128 = 30;

const RESERVATION: Parameter = required(
    "reservation_id",
    Shape::Text,
    "Id of the reservation, such as `ZFA04Y`.",
);
const USER: Parameter = required(
    "user_id",
    Shape::Text,
    "Id of the customer, such as `sara_doe_496`.",
);
const ORIGIN: Parameter = required(
    "origin",
    Shape::Text,
    "IATA code of where it begins, such as `SFO`.",
);
const DESTINATION: Parameter = required(
    "destination",
    Shape::Text,
    "IATA code of where it ends, such as `JFK`.",
);
const DATE: Parameter = required("date", Shape::Text, "Day of departure, YYYY-MM-DD.");
const CABIN: Parameter = required(
    "cabin",
    Shape::OneOf(CABINS),
    "The cabin, the same on all flights.",
);
const FLIGHTS: Parameter = required("flights", Shape::Objects(&FLIGHT_INFO), "All flights, in order.");
const PASSENGERS: Parameter = required("passengers", Shape::Objects(&PASSENGER), "All passengers.");
const PAYMENT_ID: Parameter = required(
    "payment_id",
    Shape::Text,
    "Id of a payment method of the customer's profile, which pays or is refunded the difference.",
);

static FLIGHT_INFO: Declared = Declared {
    name: "FlightInfo",
    schema: || {
        json!({
            "properties": {
                "flight_number": { "type": "string", "description": "Such as `HAT001`." },
                "date": { "type": "string", "description": "Day of departure, YYYY-MM-DD." },
            },
            "required": ["flight_number", "date"], "type": "object",
        })
    },
    others: Map::new,
};
static PASSENGER: Declared = Declared {
    name: "Passenger",
    schema: || {
        json!({
            "properties": {
                "first_name": { "type": "string", "description": "First name." },
                "last_name": { "type": "string", "description": "Last name." },
                "dob": { "type": "string", "description": "Date of birth, YYYY-MM-DD." },
            },
            "required": ["first_name", "last_name", "dob"], "type": "object",
        })
    },
    others: Map::new,
};
static PAYMENT: Declared = Declared {
    name: "Payment",
    schema: || {
        json!({
            "properties": {
                "payment_id": { "type": "string", "description": "Id of a payment method of the customer's profile." },
                "amount": { "type": "integer", "description": "Dollars paid with it." },
            },
            "required": ["payment_id", "amount"], "type": "object",
        })
    },
    others: Map::new,
};

/// In the benchmark's order.
pub(super) static ALL: &[Tool<Airline>] = &[
    Tool {
        name: "book_reservation",
        kind: Kind::Write,
        description: "Book flights for a customer and charge the payment methods.",
        parameters: &[
            USER,
            ORIGIN,
            DESTINATION,
            required(
                "flight_type",
                Shape::OneOf(FLIGHT_TYPES),
                "Whether it leads back to its origin.",
            ),
            CABIN,
            FLIGHTS,
            PASSENGERS,
            required(
                "payment_methods",
                Shape::Objects(&PAYMENT),
                "What pays how much; together the total price.",
            ),
            required(
                "total_baggages",
                Shape::Integer,
                "Checked bags of all passengers.",
            ),
            required(
                "nonfree_baggages",
                Shape::Integer,
                "Those of them that are paid for.",
            ),
            required(
                "insurance",
                Shape::OneOf(YES_OR_NO),
                "Whether travel insurance is bought.",
            ),
        ],
        run: book_reservation,
    },
    calculate::tool(),
    Tool {
        name: "cancel_reservation",
        kind: Kind::Write,
        description: "Cancel a whole reservation; every payment is refunded.",
        parameters: &[RESERVATION],
        run: cancel_reservation,
    },
    Tool {
        name: "get_reservation_details",
        kind: Kind::Read,
        description: "Look a reservation up.",
        parameters: &[RESERVATION],
        run: |world, call| Ok(world.reservation(call.key("reservation_id")?)?.dumps()),
    },
    Tool {
        name: "get_user_details",
        kind: Kind::Read,
        description: "Look a customer up: profile, payment methods and reservations.",
        parameters: &[USER],
        run: |world, call| Ok(world.user(call.key("user_id")?)?.dumps()),
    },
    Tool {
        name: "list_all_airports",
        kind: Kind::Read,
        description: "List the airports with their cities.",
        parameters: &[],
        run: |_, _| Ok(list_all_airports()),
    },
    Tool {
        name: "search_direct_flight",
        kind: Kind::Read,
        description: "Find flights between two airports on a day that can be booked.",
        parameters: &[ORIGIN, DESTINATION, DATE],
        run: |world, call| {
            let legs = world.bookable(
                call.given("origin"),
                call.given("destination"),
                call.given("date"),
            )?;
            let legs: Vec<DirectFlight> = legs
                .into_iter()
                .map(|(flight, seats)| shown(flight, seats, None))
                .collect();
            Ok(python::dumps(&legs))
        },
    },
    Tool {
        name: "search_onestop_flight",
        kind: Kind::Read,
        description: "Find pairs of flights with one stop between two airports that can be booked.",
        parameters: &[ORIGIN, DESTINATION, DATE],
        run: search_onestop_flight,
    },
    Tool {
        name: "send_certificate",
        kind: Kind::Write,
        description: "Give a customer a travel certificate. Mind the policy.",
        parameters: &[USER, required("amount", Shape::Integer, "Its worth, in dollars.")],
        run: send_certificate,
    },
    transfer::tool(),
    Tool {
        name: "update_reservation_baggages",
        kind: Kind::Write,
        description: "Change the checked bags of a reservation.",
        parameters: &[
            RESERVATION,
            required(
                "total_baggages",
                Shape::Integer,
                "Checked bags of the reservation from now on.",
            ),
            required(
                "nonfree_baggages",
                Shape::Integer,
                "Those of them that are paid for.",
            ),
            PAYMENT_ID,
        ],
        run: update_reservation_baggages,
    },
    Tool {
        name: "update_reservation_flights",
        kind: Kind::Write,
        description: "Change the flights or the cabin of a reservation.",
        parameters: &[
            RESERVATION,
            CABIN,
            required(
                "flights",
                Shape::Objects(&FLIGHT_INFO),
                "All flights of the reservation from now on, those that stay included.",
            ),
            PAYMENT_ID,
        ],
        run: update_reservation_flights,
    },
    Tool {
        name: "update_reservation_passengers",
        kind: Kind::Write,
        description: "Change who travels on a reservation; their number stays.",
        parameters: &[RESERVATION, PASSENGERS],
        run: update_reservation_passengers,
    },
    Tool {
        name: "get_flight_status",
        kind: Kind::Read,
        description: "Look up how a flight stands on a day.",
        parameters: &[required("flight_number", Shape::Text, "Such as `HAT001`."), DATE],
        run: |world, call| {
            let number = call.key("flight_number")?;
            let flight = world.flight(number)?;
            let departure = departure(flight, number, call.key("date")?)?;
            Ok(departure.status().to_owned())
        },
    },
];

impl Airline {
    fn user(&self, id: Key) -> Result<&CachedJson<User>, ToolError> {
        let user = id.id().and_then(|id| self.users.get(id));
        user.ok_or_else(|| ToolError(format!("User {id} not found")))
    }

    fn reservation(&self, id: Key) -> Result<&CachedJson<Reservation>, ToolError> {
        let reservation = id.id().and_then(|id| self.reservations.get(id));
        reservation.ok_or_else(|| ToolError(format!("Reservation {id} not found")))
    }

    fn flight(&self, number: Key) -> Result<&Flight, ToolError> {
        let flight = number.id().and_then(|number| self.flights.get(number));
        flight.map_or_else(
            || fail(format!("Flight {number} not found")),
            |flight| Ok(&**flight),
        )
    }

    /// A flight that is to be booked, with what can be bought on it.
    fn to_book(&self, wanted: FlightInfo, cabin: &Value, passengers: usize) -> Result<Segment, ToolError> {
        let FlightInfo { flight_number, date } = wanted;
        let number = flight_number.as_str().into();
        let flight = self.flight(number)?;
        let departure = departure(flight, number, date.as_str().into())?;
        let Departure::Available(seats) = departure else {
            return fail(format!("Flight {flight_number} not available on date {date}"));
        };
        let cabin = Key::new(cabin)?;
        let of = |cabins: &Cabins| cabin.id().and_then(|cabin| cabins.get(cabin)).copied();
        let (Some(left), Some(price)) = (of(&seats.available_seats), of(&seats.prices)) else {
            return fail(format!("'{cabin}'"));
        };
        if !usize::try_from(left).is_ok_and(|left| left >= passengers) {
            return fail(format!("Not enough seats on flight {flight_number}"));
        }
        Ok(Segment {
            origin: flight.origin.clone(),
            destination: flight.destination.clone(),
            flight_number,
            date,
            price,
        })
    }

    /// Flights that can be booked, in order. A place that is null is any.
    fn bookable(
        &self,
        origin: &Value,
        destination: &Value,
        date: &Value,
    ) -> Result<Vec<(&Flight, &Seats)>, ToolError> {
        let mut found = Vec::new();
        let origin = match origin {
            Value::Null => None,
            Value::String(place) => Some(place.into()),
            _ => return Ok(found),
        };
        for (place, number) in self.routes.get(&origin).into_iter().flatten() {
            if !destination.is_null() && destination.as_str() != Some(place) {
                continue;
            }
            let flight = self.flight(number.as_str().into())?;
            let departure = Key::new(date)?.id().and_then(|date| flight.dates.get(date));
            if let Some(Departure::Available(seats)) = departure.map(|departure| &**departure) {
                found.push((flight, seats));
            }
        }
        Ok(found)
    }

    /// Checks that a method pays an amount (or takes it back, where it is negative) for a change of a
    /// reservation, and returns the payment that is to be noted, if any.
    fn checked_payment(&self, user: &str, method: Key, amount: Number) -> Result<Option<Payment>, ToolError> {
        let user = self.users.get(user);
        let method = method
            .id()
            .and_then(|id| Some((id, user?.payment_methods.get(id)?)));
        let Some((id, method)) = method else {
            return fail("Payment method not found");
        };
        match method {
            PaymentMethod::Certificate { .. } => {
                return fail("Certificate cannot be used to update reservation");
            }
            PaymentMethod::GiftCard { amount: left, .. } if *left < amount.float() => {
                return fail("Gift card balance is not enough");
            }
            PaymentMethod::GiftCard { .. } | PaymentMethod::CreditCard { .. } => {}
        }
        if amount.equals(Number::Int(0)) {
            return Ok(None);
        }
        match amount.whole() {
            Some(amount) => Ok(Some(Payment {
                payment_id: id.into(),
                amount,
            })),
            None => fail(format!("{} is no whole amount", amount.text())),
        }
    }

    /// Changes a reservation and charges what was checked.
    fn change(
        &mut self,
        id: &str,
        payment: Option<Payment>,
        change: impl FnOnce(&mut Reservation),
    ) -> Answer {
        let Some(reservation) = self.reservations.get_mut(id) else {
            return fail(format!("Reservation {id} not found"));
        };
        change(reservation);
        if let Some(payment) = payment {
            let user = self.users.get_mut(&reservation.user_id);
            let method = user.and_then(|user| user.payment_methods.get_mut(&payment.payment_id));
            if let Some(PaymentMethod::GiftCard { amount, .. }) = method {
                *amount -= payment.amount as f64;
            }
            reservation.payment_history.push(payment);
        }
        Ok(python::dumps(reservation))
    }
}

/// A flight on a day.
fn departure<'a>(flight: &'a Flight, number: Key, date: Key) -> Result<&'a Departure, ToolError> {
    let departure = date.id().and_then(|date| flight.dates.get(date));
    departure.map_or_else(
        || fail(format!("Flight {number} not found on date {date}")),
        |departure| Ok(&**departure),
    )
}

fn shown<'a>(flight: &'a Flight, seats: &'a Seats, date: Option<&'a str>) -> DirectFlight<'a> {
    DirectFlight {
        flight_number: &flight.flight_number,
        origin: &flight.origin,
        destination: &flight.destination,
        status: "available",
        scheduled_departure_time_est: &flight.scheduled_departure_time_est,
        scheduled_arrival_time_est: &flight.scheduled_arrival_time_est,
        date,
        available_seats: &seats.available_seats,
        prices: &seats.prices,
    }
}

fn list_all_airports() -> String {
    const AIRPORTS: [(&str, &str); 20] = [
        ("SFO", "San Francisco"),
        ("JFK", "New York"),
        ("LAX", "Los Angeles"),
        ("ORD", "Chicago"),
        ("DFW", "Dallas"),
        ("DEN", "Denver"),
        ("SEA", "Seattle"),
        ("ATL", "Atlanta"),
        ("MIA", "Miami"),
        ("BOS", "Boston"),
        ("PHX", "Phoenix"),
        ("IAH", "Houston"),
        ("LAS", "Las Vegas"),
        ("MCO", "Orlando"),
        ("EWR", "Newark"),
        ("CLT", "Charlotte"),
        ("MSP", "Minneapolis"),
        ("DTW", "Detroit"),
        ("PHL", "Philadelphia"),
        ("LGA", "LaGuardia"),
    ];
    let airports = AIRPORTS.map(|(iata, city)| json!({ "iata": iata, "city": city }));
    python::dumps(&airports)
}

fn search_onestop_flight(world: &mut Airline, call: &Call) -> Answer {
    let date = call.given("date");
    let day = date.as_str().unwrap_or_default();
    let mut pairs = Vec::new();
    for (first, seats) in world.bookable(call.given("origin"), &Value::Null, date)? {
        let next = if first.scheduled_arrival_time_est.contains("+1") {
            next_day(day)?
        } else {
            day.to_owned()
        };
        let connections = world.bookable(
            &first.destination.as_str().into(),
            call.given("destination"),
            &next.as_str().into(),
        )?;
        for (second, second_seats) in connections {
            // As texts, a `+1` of the arrival included.
            if second.scheduled_departure_time_est >= first.scheduled_arrival_time_est {
                pairs.push((first, seats, second, second_seats, next.clone()));
            }
        }
    }
    let pairs: Vec<[DirectFlight; 2]> = pairs
        .iter()
        .map(|(first, seats, second, second_seats, next)| {
            [
                shown(first, seats, Some(day)),
                shown(second, second_seats, Some(next)),
            ]
        })
        .collect();
    Ok(python::dumps(&pairs))
}

/// The day after one of May 2024, without a leading zero as in the benchmark: no flight leaves on the
/// 1st to the 9th then.
fn next_day(date: &str) -> Result<String, ToolError> {
    let day = date
        .get(date.len().saturating_sub(2)..)
        .and_then(|day| day.parse::<u32>().ok());
    match day {
        Some(day) => Ok(format!("2024-05-{}", day + 1)),
        None => fail(format!("no day of a month: {date}")),
    }
}

fn one_of<'a>(call: &Call<'a>, name: &str, allowed: &[&str]) -> Result<&'a str, ToolError> {
    let given = call.text(name)?;
    if allowed.contains(&given) {
        return Ok(given);
    }
    fail(format!(
        "{name} should be one of {}, not '{given}'",
        allowed.join(", ")
    ))
}

fn whole(call: &Call, name: &str) -> Result<i64, ToolError> {
    let given = call.given(name);
    number::int(given).ok_or_else(|| {
        ToolError(format!(
            "{name} should be a whole number, not {}",
            python::repr(given)
        ))
    })
}

fn book_reservation(world: &mut Airline, call: &Call) -> Answer {
    const IDS: [&str; 3] = ["HATHAT", "HATHAU", "HATHAV"];
    let flights = call.objects::<FlightInfo>("flights")?;
    let passengers = call.objects::<Passenger>("passengers")?;
    let payments = call.objects::<Payment>("payment_methods")?;
    let user = world.user(call.key("user_id")?)?;
    let Some(id) = IDS.into_iter().find(|id| world.reservations.get(id).is_none()) else {
        return fail("Too many reservations");
    };
    let mut reservation = Reservation {
        reservation_id: id.into(),
        user_id: user.user_id.clone(),
        origin: call.text("origin")?.into(),
        destination: call.text("destination")?.into(),
        flight_type: one_of(call, "flight_type", FLIGHT_TYPES)?.into(),
        cabin: one_of(call, "cabin", CABINS)?.into(),
        flights: CachedJson::new(Vec::new()),
        passengers: CachedJson::new(passengers.read()?),
        payment_history: payments.read()?,
        created_at: NOW.into(),
        total_baggages: whole(call, "total_baggages")?.into(),
        nonfree_baggages: whole(call, "nonfree_baggages")?.into(),
        insurance: one_of(call, "insurance", YES_OR_NO)?.into(),
        status: None,
    };
    let travellers = reservation.passengers.len();
    let heads = Number::Int(travellers as i128);
    let mut total = Number::Int(0);
    let mut segments = Vec::new();
    for flight in flights.read()? {
        let segment = world.to_book(flight, &reservation.cabin, travellers)?;
        total = total.plus(Number::Int(i128::from(segment.price)).times(heads));
        segments.push(segment);
    }
    reservation.flights = CachedJson::new(segments);
    if reservation.insurance == "yes" {
        total = total.plus(Number::Int(INSURANCE).times(heads));
    }
    total = total.plus(Number::Int(BAG).times(Number::of(call.given("nonfree_baggages"))?));
    let mut paid = 0;
    let mut certificates = Vec::new();
    for Payment { payment_id, amount } in &reservation.payment_history {
        let Some(method) = user.payment_methods.get(payment_id) else {
            return fail(format!("Payment method {payment_id} not found"));
        };
        if let PaymentMethod::GiftCard { amount: left, .. } | PaymentMethod::Certificate { amount: left, .. } =
            method
            && *left < *amount as f64
        {
            return fail(format!("Not enough balance in payment method {payment_id}"));
        }
        if let PaymentMethod::Certificate { .. } = method {
            certificates.push(payment_id);
        }
        paid += i128::from(*amount);
    }
    if !total.equals(Number::Int(paid)) {
        return fail(format!(
            "Payment amount does not add up, total price is {}, but paid {paid}",
            total.text()
        ));
    }
    // A certificate is used up by its first use.
    certificates.sort();
    if let Some([one, _]) = certificates.array_windows().find(|[one, next]| one == next) {
        return fail(format!("'{one}'"));
    }
    let answer = python::dumps(&reservation);
    world.book(reservation);
    Ok(answer)
}

impl Airline {
    /// Takes the payments and the seats of a reservation that was checked, and keeps it.
    fn book(&mut self, reservation: Reservation) {
        if let Some(user) = self.users.get_mut(&reservation.user_id) {
            for Payment {
                payment_id,
                amount: paid,
            } in &reservation.payment_history
            {
                match user.payment_methods.get_mut(payment_id) {
                    Some(PaymentMethod::GiftCard { amount, .. }) => *amount -= *paid as f64,
                    Some(PaymentMethod::Certificate { .. }) => {
                        user.payment_methods.shift_remove(payment_id);
                    }
                    Some(PaymentMethod::CreditCard { .. }) | None => {}
                }
            }
            user.reservations.push(reservation.reservation_id.clone());
        }
        for Segment {
            flight_number, date, ..
        } in reservation.flights.iter()
        {
            let flight = self.flights.get_mut(flight_number);
            let departure = flight.and_then(|flight| flight.dates.get_mut(date));
            if let Some(Departure::Available(seats)) = departure
                && let Some(left) = reservation
                    .cabin
                    .as_str()
                    .and_then(|cabin| seats.available_seats.get_mut(cabin))
            {
                *left = left.saturating_sub_unsigned(reservation.passengers.len() as u64);
            }
        }
        self.reservations
            .insert(reservation.reservation_id.clone(), reservation);
    }
}

fn cancel_reservation(world: &mut Airline, call: &Call) -> Answer {
    let reservation = world.reservation(call.key("reservation_id")?)?;
    let refund = |payment: &Payment| {
        Some(Payment {
            payment_id: payment.payment_id.clone(),
            amount: payment.amount.checked_neg()?,
        })
    };
    let refunds: Option<Vec<Payment>> = reservation.payment_history.iter().map(refund).collect();
    let Some(refunds) = refunds else {
        return fail("a payment is too large to be refunded");
    };
    let id = reservation.reservation_id.clone();
    world.change(&id, None, |reservation| {
        reservation.payment_history.extend(refunds);
        reservation.status = Some("cancelled".into());
    })
}

fn send_certificate(world: &mut Airline, call: &Call) -> Answer {
    const IDS: [&str; 3] = [
        "certificate_3221322",
        "certificate_3221323",
        "certificate_3221324",
    ];
    let user = world.user(call.key("user_id")?)?;
    let given = call.given("amount");
    let Some(id) = IDS.into_iter().find(|id| !user.payment_methods.contains_key(*id)) else {
        return fail("Too many certificates");
    };
    let Some(amount) = number::float(given) else {
        return fail(format!("amount should be a number, not {}", python::repr(given)));
    };
    let user_id = user.user_id.clone();
    if let Some(user) = world.users.get_mut(&user_id) {
        let certificate = PaymentMethod::Certificate {
            id: id.into(),
            amount,
        };
        user.payment_methods.insert(id.into(), certificate);
    }
    Ok(format!(
        "Certificate {id} added to user {user_id} with amount {}.",
        python::text(given)
    ))
}

fn update_reservation_baggages(world: &mut Airline, call: &Call) -> Answer {
    let reservation = world.reservation(call.key("reservation_id")?)?;
    let (total, nonfree) = (call.given("total_baggages"), call.given("nonfree_baggages"));
    let more = Number::of(nonfree)?.minus(Number::of(&reservation.nonfree_baggages)?);
    let amount = Number::Int(BAG).times(more.or_zero());
    let payment = world.checked_payment(&reservation.user_id, call.key("payment_id")?, amount)?;
    let id = reservation.reservation_id.clone();
    world.change(&id, payment, |reservation| {
        reservation.total_baggages = total.clone();
        reservation.nonfree_baggages = nonfree.clone();
    })
}

fn update_reservation_flights(world: &mut Airline, call: &Call) -> Answer {
    let wanted = call.objects::<FlightInfo>("flights")?;
    let reservation = world.reservation(call.key("reservation_id")?)?;
    let cabin = call.given("cabin");
    let travellers = reservation.passengers.len();
    let mut flights = Vec::new();
    for flight in wanted.read()? {
        let is_it =
            |segment: &&Segment| segment.flight_number == flight.flight_number && segment.date == flight.date;
        let booked = reservation
            .flights
            .iter()
            .find(is_it)
            .filter(|_| *cabin == reservation.cabin);
        flights.push(match booked {
            Some(booked) => booked.clone(),
            None => world.to_book(flight, cabin, travellers)?,
        });
    }
    let price = |flights: &[Segment]| {
        flights
            .iter()
            .map(|flight| i128::from(flight.price))
            .sum::<i128>()
    };
    let difference = (price(&flights) - price(&reservation.flights)) * travellers as i128;
    let payment = world.checked_payment(
        &reservation.user_id,
        call.key("payment_id")?,
        Number::Int(difference),
    )?;
    let id = reservation.reservation_id.clone();
    world.change(&id, payment, |reservation| {
        reservation.flights = CachedJson::new(flights);
        reservation.cabin = cabin.clone();
    })
}

fn update_reservation_passengers(world: &mut Airline, call: &Call) -> Answer {
    let passengers = call.objects::<Passenger>("passengers")?;
    let reservation = world.reservation(call.key("reservation_id")?)?;
    if passengers.len() != reservation.passengers.len() {
        return fail("Number of passengers does not match");
    }
    let id = reservation.reservation_id.clone();
    let passengers = passengers.read()?;
    world.change(&id, None, |reservation| {
        reservation.passengers = CachedJson::new(passengers);
    })
}
