// The groups of records that have a table of their own, with its columns: receipts, bills, parcels, trips …

import { formatAmount, formatClock, formatDay } from "../base/format.js";
import { t } from "../base/texts.js";

/**
 * A cell of a table: its text, and by what its column is sorted. `number` is for digits that line up at the right.
 *
 * @typedef {{ text: string, by: string | number, under?: string, number?: boolean }} Cell
 * @typedef {(record: ListedRecord, now: Date) => Cell} Read
 * @typedef {{ name: string, read: Read, main?: boolean, number?: boolean, isTime?: boolean, isParty?: boolean }} Column
 * @typedef {{ name: string, glyph: import("../base/dom.js").Glyph, types: string[], columns: Column[] }} RecordGroup
 */

/**
 * A field of a record, by the first of these names that it has.
 *
 * @param {ListedRecord} record
 * @param {string[]} names
 */
const fieldOf = ({ fields }, names) => names.map((name) => fields.find((field) => field.name === name)).find(Boolean);

/** @type {(record: ListedRecord, ...names: string[]) => string} */
const recordTextOf = (record, ...names) => {
  const value = fieldOf(record, names)?.value;
  return typeof value === "string" ? value : "";
};

/** @param {string} text */
const plain = (text) => ({ text, by: text.toLocaleLowerCase() });

/** @type {(...names: string[]) => Read} */
const words = (...names) => (record) => plain(recordTextOf(record, ...names));

/**
 * A day with its time below.
 *
 * @param {string} moment
 * @param {Date} now
 * @returns {Cell}
 */
const dayCell = (moment, now) => ({
  text: moment && formatDay(moment.slice(0, 10), now, "date"),
  under: moment.length > 10 ? formatClock(moment.slice(11)) : "",
  by: moment,
});

/** @type {(...names: string[]) => Read} */
const day = (...names) => (record, now) => dayCell(recordTextOf(record, ...names), now);

/** @type {Read} */
const ownDay = (record, now) => {
  const own = recordTextOf(record, "date", "departureTime", "checkinTime", "startDate", "startTime");
  return dayCell(own.startsWith(record.day) ? own : record.day, now);
};

/** @type {(...names: string[]) => Read} */
const amount = (...names) => (record) => {
  const value = fieldOf(record, names)?.value;
  if (!value || typeof value === "string" || Array.isArray(value)) return { text: "", by: -Infinity, number: true };
  return { text: formatAmount(value), by: Number(value.value), number: true };
};

/** @type {Read} */
const items = (record) => {
  const found = fieldOf(record, ["items"])?.value;
  return plain(Array.isArray(found) ? found.map((item) => item.name).join(", ") : "");
};

/** @type {Read} */
const recordRoute = (record) => {
  const [from, to] = [recordTextOf(record, "from"), recordTextOf(record, "to")];
  return plain(from && to ? `${from} → ${to}` : from || to || recordTextOf(record, "name"));
};

/** @type {Read} */
const journey = (record) => ({ ...plain(recordTextOf(record, "number", "provider")), under: t(`records.${record.type}`) });

/** @type {Read} */
const place = (record) => plain([recordTextOf(record, "gate", "platform"), recordTextOf(record, "seat")].filter(Boolean).join(" · ") || recordTextOf(record, "address"));

/** @type {RecordGroup[]} */
export const RECORD_GROUPS = [
  {
    name: "receipts", glyph: "receipt", types: ["Receipt"],
    columns: [{ name: "day", read: ownDay, isTime: true }, { name: "seller", read: words("seller"), main: true, isParty: true }, { name: "items", read: items },
      { name: "method", read: words("paymentMethod") }, { name: "total", read: amount("total"), number: true }],
  },
  {
    name: "bills", glyph: "note", types: ["Invoice"],
    columns: [{ name: "due", read: day("paymentDueDate"), isTime: true }, { name: "provider", read: words("provider"), main: true, isParty: true },
      { name: "account", read: words("accountId") }, { name: "number", read: words("confirmationNumber") },
      { name: "total", read: amount("totalPaymentDue"), number: true }],
  },
  {
    name: "payments", glyph: "money", types: ["MoneyTransfer"],
    columns: [{ name: "day", read: ownDay, isTime: true }, { name: "with", read: words("beneficiary", "sender"), main: true, isParty: true },
      { name: "reference", read: words("reference") }, { name: "amount", read: amount("amount"), number: true }],
  },
  {
    name: "subscriptions", glyph: "refresh", types: ["Subscription"],
    columns: [{ name: "provider", read: words("provider"), main: true, isParty: true }, { name: "period", read: words("billingPeriod") },
      { name: "renewal", read: day("renewalDate"), isTime: true }, { name: "price", read: amount("price"), number: true }],
  },
  {
    name: "parcels", glyph: "parcel", types: ["ParcelDelivery"],
    columns: [{ name: "arrival", read: day("expectedArrival"), isTime: true }, { name: "from", read: words("seller", "carrier"), main: true, isParty: true },
      { name: "state", read: words("status") }, { name: "tracking", read: words("trackingNumber", "orderNumber") },
      { name: "code", read: words("pickupCode") }],
  },
  {
    name: "trips", glyph: "trip", types: ["FlightReservation", "TrainReservation", "BusReservation", "LodgingReservation"],
    columns: [{ name: "day", read: ownDay, isTime: true }, { name: "where", read: recordRoute, main: true }, { name: "journey", read: journey },
      { name: "place", read: place }, { name: "booking", read: words("reservationId") }],
  },
  {
    name: "events", glyph: "calendar", types: ["EventReservation", "FoodEstablishmentReservation", "Appointment"],
    columns: [{ name: "day", read: ownDay, isTime: true }, { name: "event", read: words("name", "with"), main: true },
      { name: "venue", read: words("location") }, { name: "seat", read: words("seat", "partySize") }],
  },
  {
    name: "contacts", glyph: "phone", types: ["Contact"],
    columns: [{ name: "contact", read: words("name"), main: true }, { name: "telephone", read: words("telephone") },
      { name: "email", read: words("email") }, { name: "address", read: words("address") }],
  },
];

/**
 * The order of `/api/records` for a column, where the service knows it: by day, by amount or by who it is with.
 *
 * @param {Column | undefined} column
 * @param {boolean} down
 */
export const orderOf = (column, down) => {
  const orders = column?.isTime ? ["earliest", "latest"] : column?.number ? ["lowest", "highest"] : column?.isParty && ["a_to_z", "z_to_a"];
  return orders ? orders[Number(down)] : "latest";
};

/** @param {RecordGroup} group */
export const groupName = ({ name }) => t(`tables.${name}`);
