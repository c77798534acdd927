/** A file is no model of its format, or not a whole one. The message is for people, and says where it is wrong. */
export class ModelInvalid extends Error {
  override readonly name = "ModelInvalid";
}
