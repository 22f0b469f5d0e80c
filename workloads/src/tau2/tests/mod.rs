mod parity;
mod tools;
