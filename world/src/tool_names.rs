//! Names of the help desk's tools: as the desk offers them and its agent calls them.

pub(crate) const VERIFY_IDENTITY: &str = "verify_identity";
pub(crate) const GET_ACCOUNT: &str = "get_account";
pub(crate) const GET_ORDER: &str = "get_order";
pub(crate) const GET_SHIPMENT: &str = "get_shipment";
pub(crate) const SEARCH_PRODUCTS: &str = "search_products";
pub(crate) const FIND_SLOTS: &str = "find_slots";
pub(crate) const CANCEL_ORDER: &str = "cancel_order";
pub(crate) const RETURN_ITEMS: &str = "return_items";
pub(crate) const EXCHANGE_ITEM: &str = "exchange_item";
pub(crate) const CHANGE_ADDRESS: &str = "change_address";
pub(crate) const BOOK_APPOINTMENT: &str = "book_appointment";
pub(crate) const TRANSFER_TO_HUMAN: &str = "transfer_to_human";
